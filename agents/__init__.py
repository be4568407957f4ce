"""The only place that knows Faust: the application, its transport, and where it hands over to lanes.

Commands arrive at agents; timers make lanes scan for what is due.
"""

from .commands import attach_command_agents
from .timer import DueTimer

__all__ = ["DueTimer", "attach_command_agents"]
