"""How many inputs a test draws: all with `--soak`, as CI does, a part of them without."""

from __future__ import annotations

from hypothesis import settings

ALL = 100
"""What a profile of Hypothesis says where all are tried: its own default."""
PART = 16


def tries(most: int) -> int:
    """Return how many of so many inputs are tried, as the profile says that is in force when a module is imported."""
    return max(1, most * settings().max_examples // ALL)
