"""The bundled demo: a small project with failing tests, tasks, and scripts instead of models."""

from midwatch_supervisor.demo.scripts import script_for
from midwatch_supervisor.demo.site import make_project

__all__ = ["make_project", "script_for"]
