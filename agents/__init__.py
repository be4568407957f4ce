"""The only package that uses Faust: the application, its transport, and the hand-over of commands to lanes.

Commands arrive at agents; timers make lanes scan for due schedules.
"""

from .commands import attach_command_agents
from .timer import DueTimer

__all__ = ["DueTimer", "attach_command_agents"]
