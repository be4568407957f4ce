"""Examples below the options of a command's help."""

from __future__ import annotations


def examples(*lines: str) -> str:
    """Return an epilog that click prints unchanged. Each line is a `light-scheduler` call without that word."""
    return "\b\nExamples:\n" + "\n".join(f"  light-scheduler {line}" for line in lines)
