"""Whether another process goes on with its work, as far as Linux tells; for one that cannot say so itself."""

from __future__ import annotations

from pathlib import Path

_PROC = Path("/proc")

_AT_WORK = frozenset("RD")
"""States of a thread (proc_pid_stat(5)): it runs or waits for a processor, or waits for the disk."""

_STATE, _USER, _SYSTEM = 0, 11, 12
"""Places in a stat file behind the name of the program: the state, and the processor time taken, in ticks."""


class Activity:
    """Of a process. One that is stopped, or whose threads wait for each other, is not active; nor is any on a system
    without /proc."""

    def __init__(self, pid: int, proc: Path = _PROC) -> None:
        self._folder = proc / str(pid)
        self._ticks = 0

    def goes_on(self) -> bool:
        """Return whether the process has taken processor time since the last call, or has something under way."""
        try:
            of_process = _fields(self._folder / "stat")
            ticks = int(of_process[_USER]) + int(of_process[_SYSTEM])
            states = {_fields(thread / "stat")[_STATE] for thread in (self._folder / "task").iterdir()}
        except (OSError, ValueError, IndexError):
            return False
        before, self._ticks = self._ticks, ticks
        return self._ticks > before or not states.isdisjoint(_AT_WORK)


def _fields(stat: Path) -> list[str]:
    """Return what is behind the name, which is in brackets and can hold anything."""
    return stat.read_text(errors="replace").rpartition(")")[2].split()
