"""An outbox: schedules are booked in an SQL transaction, and sent exactly once after it commits.

`Outbox` books commands in a transaction of the application. `OutboxRelay` sends them, in its own process or within the
application; `BlockingOutboxRelay` does so in a thread. Needs the extra `outbox` (SQLAlchemy).
"""

from typing import TYPE_CHECKING

from light_scheduler.lazy_names import lazy_names

if TYPE_CHECKING:
    from .booking import Outbox
    from .errors import DatabaseBehind, OutboxError, OutboxInDoubt
    from .relay import BlockingOutboxRelay, OutboxRelay, RelayOptions
    from .takeover import AjendaTakeover, TakenOver

__all__ = [
    "AjendaTakeover",
    "BlockingOutboxRelay",
    "DatabaseBehind",
    "Outbox",
    "OutboxError",
    "OutboxInDoubt",
    "OutboxRelay",
    "RelayOptions",
    "TakenOver",
]

__getattr__ = lazy_names(
    __name__,
    {
        "booking": ("Outbox",),
        "errors": ("DatabaseBehind", "OutboxError", "OutboxInDoubt"),
        "relay": ("BlockingOutboxRelay", "OutboxRelay", "RelayOptions"),
        "takeover": ("AjendaTakeover", "TakenOver"),
    },
)
