"""The bus: hints that the journal has grown. It may lose any of them; then things are only late."""

from midwatch_monitor.bus.local import CAPACITY, Bus, LocalBus, Subscription

__all__ = ["CAPACITY", "Bus", "LocalBus", "Subscription"]
