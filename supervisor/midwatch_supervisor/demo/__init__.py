"""The bundled demo: a small project with failing tests, tasks, and scripts instead of models."""

from midwatch_supervisor.demo.project_copy import make_project
from midwatch_supervisor.demo.scripts import script_for

__all__ = ["make_project", "script_for"]
