"""Where Faust hands over: the agents that commands arrive at, and the timers that make lanes scan for what is due."""

from .commands import attach_command_agents
from .timer import DueTimer

__all__ = ["DueTimer", "attach_command_agents"]
