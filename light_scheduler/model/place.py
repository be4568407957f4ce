"""The destination of firings: a partition of a target topic, or the whole topic."""

from __future__ import annotations

Place = tuple[str, int]
"""(topic, partition) of a target. Partition -1 stands for any partition of the topic."""
