"""Where firings go: a partition of a target topic, or the topic as a whole."""

from __future__ import annotations

Place = tuple[str, int]
"""(topic, partition) of a target; partition -1: the topic, whichever partition."""
