"""The size of topics on the broker's disk."""

from __future__ import annotations

from pathlib import Path

from light_scheduler.bench.footprint import disk_bytes


def topic_bytes(broker_folder: Path, prefix: str) -> int:
    """Return the size of all topics with this prefix, without those that are being deleted."""
    return sum(
        disk_bytes(partition) for partition in broker_folder.rglob(f"{prefix}*-*") if not _is_deleted(partition.name)
    )


def _is_deleted(name: str) -> bool:
    return name.endswith("-delete")
