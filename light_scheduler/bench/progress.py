"""What a run is doing, on standard error while it does it."""

from __future__ import annotations

from types import TracebackType
from typing import Self

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, TextColumn, TimeElapsedColumn
from rich.progress import Progress as RichProgress

_UPDATES_PER_S = 4  # drawing takes processor time from what is measured


class Progress:
    """A bar for the phase that runs, on a terminal; else a line for each phase. A context manager."""

    def __init__(self, console: Console | None = None) -> None:
        self._console = console or Console(stderr=True)
        self._bar = RichProgress(
            TextColumn("{task.description}"),
            BarColumn(),
            MofNCompleteColumn(),
            TimeElapsedColumn(),
            console=self._console,
            transient=True,
            refresh_per_second=_UPDATES_PER_S,
        )
        self._task = self._bar.add_task("", total=None)
        self.round = ""
        """What stands before each phase, such as `round 1 of 3`."""

    def phase(self, text: str, total: int | None = None) -> None:
        """Begin a phase of so many steps; None: nobody knows."""
        description = f"{self.round}: {text}" if self.round else text
        self._bar.reset(self._task, total=total, completed=0, description=description)
        if not self._console.is_terminal:
            self._console.print(description, highlight=False)

    def note(self, text: str) -> None:
        """Say something that stays to be read."""
        self._console.print(text, highlight=False, markup=False, soft_wrap=True)

    def done(self, steps: int) -> None:
        """Say how many steps of the phase are done."""
        self._bar.update(self._task, completed=steps)

    def __enter__(self) -> Self:
        if self._console.is_terminal:
            self._bar.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        if self._console.is_terminal:
            self._bar.stop()
