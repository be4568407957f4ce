"""Progress of a run, on standard error."""

from __future__ import annotations

from rich.console import Console

from light_scheduler.phases import PhaseBar


class Progress(PhaseBar):
    """The bar of a run, which can have several rounds."""

    def __init__(self, console: Console | None = None) -> None:
        super().__init__(console=console)
        self.round = ""
        """Prefix of each phase, such as `round 1 of 3`."""

    def phase(self, text: str, total: int | None = None) -> None:
        """Begin a phase with `total` steps; None: unknown."""
        self.begin(f"{self.round}: {text}" if self.round else text, total)

    def note(self, text: str) -> None:
        """Print a line that stays visible."""
        self.console.print(text, highlight=False, markup=False, soft_wrap=True)
