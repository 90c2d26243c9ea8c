"""The bus: hints that the journal has grown. A lost hint only makes things late."""
# ruff: noqa: I001 (it would want a statement for each of these names)

from midwatch_monitor.bus.local import (
    CAPACITY as CAPACITY,
    Bus as Bus,
    BusCounters as BusCounters,
    Departures as Departures,
    FleetBus as FleetBus,
    LocalBus as LocalBus,
    NodeGone as NodeGone,
    Subscription as Subscription,
    bus_for as bus_for,
)
