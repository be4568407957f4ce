"""The schedule table: a partition's pending schedules in RocksDB, in due order.

Also maintains its copies: restores them from the changelog, rebuilds them in a separate process, keeps standbys warm.
"""

from typing import TYPE_CHECKING

from light_scheduler.lazy_names import lazy_names

if TYPE_CHECKING:
    from .due_scan import DueScan
    from .loading import BulkLoad
    from .overlay import Overlay
    from .store import MemoryStore, Store
    from .table import Checkpoint, ScheduleTable

__all__ = ["BulkLoad", "Checkpoint", "DueScan", "MemoryStore", "Overlay", "ScheduleTable", "Store"]

__getattr__ = lazy_names(
    __name__,
    {
        "due_scan": ("DueScan",),
        "loading": ("BulkLoad",),
        "overlay": ("Overlay",),
        "store": (
            "MemoryStore",
            "Store",
        ),
        "table": (
            "Checkpoint",
            "ScheduleTable",
        ),
    },
)
