"""What a judge raises."""

from __future__ import annotations


class Violation(Exception):
    """The world is not as it must be."""
