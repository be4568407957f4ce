"""Examples below the options of a command's help."""

from __future__ import annotations


def examples(*lines: str) -> str:
    """Return an epilog that click prints as it is: each line is one `light-scheduler` call, without that word."""
    return "\b\nExamples:\n" + "\n".join(f"  light-scheduler {line}" for line in lines)
