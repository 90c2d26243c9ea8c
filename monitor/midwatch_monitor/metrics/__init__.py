"""What came of it all: figures of finished and running tasks, folded from the journal. Pure."""

from midwatch_monitor.metrics.figures import Figures, RunMetrics

__all__ = ["Figures", "RunMetrics"]
