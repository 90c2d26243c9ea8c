"""The bus: hints that the journal has grown. It may lose any of them; then things are only late."""

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
