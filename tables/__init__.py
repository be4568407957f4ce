"""The schedule table: a partition's pending schedules in RocksDB, in the order in which they are due.

And how a copy of it comes to be: restored from the changelog, rebuilt by its own process, kept warm.
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
