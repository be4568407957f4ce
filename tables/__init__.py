"""The schedule table: a partition's pending schedules in RocksDB, in the order in which they are due."""

from .due_scan import DueScan
from .loading import BulkLoad
from .overlay import Overlay
from .store import MemoryStore, Store
from .table import Checkpoint, ScheduleTable

__all__ = ["BulkLoad", "Checkpoint", "DueScan", "MemoryStore", "Overlay", "ScheduleTable", "Store"]
