"""A command of a history as the record that is sent."""

from __future__ import annotations

from light_scheduler.wire.lane_marks import BULK_COUNT

from .history import SCHEDULES, SELECTIONS, TENANTS, Send
from .names import REPLIES
from .ruled import TENANTS as RULED_TENANTS


class Command:
    """A record to be sent. The headers `kind` and `due` tell the model; to the scheduler they are the user's."""

    def __init__(self, send: Send, due: int) -> None:
        self.key = send.id.encode()
        self.value = send.payload
        self.headers = [
            ("kind", send.kind.encode()),
            ("due", b"%d" % due),
            ("schedule-reply-topic", REPLIES.encode()),
            ("schedule-tenant", {**TENANTS, **RULED_TENANTS, **SELECTIONS}.get(send.id, "default").encode()),
            ("schedule-command", b"schedule" if send.kind in SCHEDULES else send.kind.removesuffix("-many").encode()),
        ]
        if send.kind.endswith("-many"):
            self.headers.append(("schedule-id", send.id.encode()))
        if send.kind in SCHEDULES:
            if send.target:
                self.headers.append(("schedule-target-topic", send.target.encode()))
            if send.wait >= 0 and send.wait % 100:
                self.headers.append(("schedule-after", b"%d" % send.wait))
            else:
                self.headers.append(("schedule-at", b"%d" % due))
        if send.kind in ("keep", "fail"):
            self.headers.append(("schedule-on-conflict", send.kind.encode()))
        if send.kind == "invalid":  # one in two pretends to be a count of another partition
            is_forged = send.id in "ab"
            forged = (BULK_COUNT, b"%d:%d:7:" % (due % 4, 1 - send.partition) + b"0" * 32)
            self.headers.append(forged if is_forged else ("schedule-ta", b"?"))
