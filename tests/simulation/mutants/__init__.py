"""Planted bugs: what the commit protocol would be with one step wrong. Each must be caught by the model.

A mutant is the real lane with one thing replaced, for as long as its context lasts. The modules register them.
"""

from . import (  # noqa: F401 (they register theirs)
    anew,
    away,
    bulk,
    committing,
    counts,
    delayed,
    failing,
    growth,
    lending,
    rates,
    recovering,
    state,
    takeover,
    taking,
    tenants,
)
from .planting import MUTANTS, Mutant

__all__ = ["MUTANTS", "Mutant"]
