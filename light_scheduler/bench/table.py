"""A run's result as a table for people."""

from __future__ import annotations

from rich.table import Table
from rich.text import Text

from .document import Document
from .figures import FAULTS, Figure
from .options import Options


def table_of(document: Document) -> Table:
    """Return the figures, with the machine and settings that they were measured with."""
    settings, machine = document.settings, document.machine
    table = Table(
        title=f"{document.scenario}: {_amount(settings)} x {settings.payload_bytes:,} bytes, "
        f"partitions: {settings.partitions}, rounds: {settings.repeat}",
        caption=f"{machine['cores']} x {machine['cpu']}, load {machine['load_before']} before; "
        f"Kafka {document.versions['kafka']}, Python {document.versions['python']}",
        title_justify="left",
        caption_justify="left",
    )
    table.add_column("Figure")
    for name in ("median", "min", "max"):
        table.add_column(name, justify="right")
    table.add_column("unit")
    for name, figure in document.figures.items():
        style = "bold red" if name in FAULTS and (figure.min or figure.max) else ""
        numbers = [number_text(value) for value in (figure.median, figure.min, figure.max)]
        table.add_row(Text(name, style), *numbers, _unit_text(figure))
    return table


def _amount(settings: Options) -> str:
    parts = [f"{settings.messages:,}"] if settings.messages else []
    if settings.pending:
        parts.append(f"{settings.pending:,} pending")
    return ", ".join(parts)


def number_text(value: float) -> str:
    """Format a number with its significant digits: `61,234`, `15.3`, `0.41`, `1.9e-06`."""
    if value == int(value) or abs(value) >= 100:
        return f"{value:,.0f}"
    if abs(value) < 0.01:
        return f"{value:.2g}"
    return f"{value:.1f}" if abs(value) >= 10 else f"{value:.2f}"


def _unit_text(figure: Figure) -> str:
    return "" if figure.unit in ("1", "count") else figure.unit
