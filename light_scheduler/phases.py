"""Shows the progress of long work on standard error."""

from __future__ import annotations

from types import TracebackType
from typing import Self

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, ProgressColumn, TextColumn, TimeElapsedColumn

_UPDATES_PER_S = 4  # drawing takes processor time from the work


class PhaseBar:
    """Shows a bar for the current phase on a terminal, otherwise a line for each phase. A context manager."""

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
        """Begin a phase of `total` steps; None if unknown."""
        self._bar.reset(self._task, total=total, completed=0, description=text, visible=True)
        if not self.console.is_terminal:
            self.console.print(text, highlight=False)

    def done(self, steps: int) -> None:
        """Set the number of finished steps of the phase."""
        self._bar.update(self._task, completed=steps)

    def done_of(self, steps: int, total: int) -> None:
        """Set the number of finished steps of the phase, and of all steps known so far (0 if unknown)."""
        self._bar.update(self._task, total=total or None, completed=steps)

    def end(self) -> None:
        """End the phase. Nothing is shown until the next one begins."""
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
