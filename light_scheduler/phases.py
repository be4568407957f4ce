"""Progress of long work, on standard error."""

from __future__ import annotations

from types import TracebackType
from typing import Self

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, ProgressColumn, TextColumn, TimeElapsedColumn

_UPDATES_PER_S = 4  # drawing takes processor time from what is done


class PhaseBar:
    """A bar for the phase that runs, on a terminal; else a line for each phase. A context manager."""

    def __init__(self, *leading: ProgressColumn, console: Console | None = None) -> None:
        self.console = console or Console(stderr=True)
        self._bar = Progress(
            *leading,
            TextColumn("{task.description}"),
            BarColumn(),
            MofNCompleteColumn(),
            TimeElapsedColumn(),
            console=self.console,
            transient=True,
            refresh_per_second=_UPDATES_PER_S,
        )
        self._task = self._bar.add_task("", total=None, visible=False)

    def begin(self, text: str, total: int | None = None) -> None:
        """Begin a phase of `total` steps; None: not known."""
        self._bar.reset(self._task, total=total, completed=0, description=text, visible=True)
        if not self.console.is_terminal:
            self.console.print(text, highlight=False)

    def done(self, steps: int) -> None:
        """Say how many steps of the phase are done."""
        self._bar.update(self._task, completed=steps)

    def done_of(self, steps: int, total: int) -> None:
        """Say how many steps of the phase are done, of as many as are known by then; 0: of none yet."""
        self._bar.update(self._task, total=total or None, completed=steps)

    def end(self) -> None:
        """End the phase; nothing is shown until another one begins."""
        self._bar.update(self._task, visible=False)

    def __enter__(self) -> Self:
        if self.console.is_terminal:
            self._bar.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        if self.console.is_terminal:
            self._bar.stop()
