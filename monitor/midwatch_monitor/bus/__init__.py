"""The bus: hints that the journal has grown. A lost hint only makes things late."""

from midwatch_monitor.bus.local import (
    CAPACITY,
    Bus,
    BusCounters,
    Departures,
    FleetBus,
    LocalBus,
    NodeGone,
    Subscription,
    bus_for,
)

__all__ = [
    "CAPACITY",
    "Bus",
    "BusCounters",
    "Departures",
    "FleetBus",
    "LocalBus",
    "NodeGone",
    "Subscription",
    "bus_for",
]
