"""Whether another process makes progress, according to Linux; for processes that cannot report it themselves."""

from __future__ import annotations

from pathlib import Path

_PROC = Path("/proc")

_AT_WORK = frozenset("RD")
"""States of an active thread (proc_pid_stat(5)): it runs or waits for a processor, or waits for the disk."""

_STATE, _USER, _SYSTEM = 0, 11, 12
"""Fields of a stat file after the program's name: the state, and the processor time used, in ticks."""


class Activity:
    """The activity of a process. A process that is stopped, or whose threads wait for each other, is not active.
    Without /proc, no process is."""

    def __init__(self, pid: int, proc: Path = _PROC) -> None:
        self._folder = proc / str(pid)
        self._ticks = 0

    def goes_on(self) -> bool:
        """Return whether the process has used processor time since the last call, or has a thread at work."""
        try:
            of_process = _fields(self._folder / "stat")
            ticks = int(of_process[_USER]) + int(of_process[_SYSTEM])
            states = {_fields(thread / "stat")[_STATE] for thread in (self._folder / "task").iterdir()}
        except (OSError, ValueError, IndexError):
            return False
        before, self._ticks = self._ticks, ticks
        return self._ticks > before or not states.isdisjoint(_AT_WORK)


def _fields(stat: Path) -> list[str]:
    """Return the fields after the name, which is in parentheses and may contain anything."""
    return stat.read_text(errors="replace").rpartition(")")[2].split()
