"""The consumer that completes messages, according to the header `chaos-ack` of each.

`success` and `failure` complete every attempt in that way. `second` skips the first attempt and completes the next.
`twice` completes each attempt twice, `ignore` none.
"""

from __future__ import annotations

from types import TracebackType

from .checker import Record
from .checker.records import control_of
from .live import LiveReader
from .sending import Sender
from .workload import ACK


class Completer(LiveReader):
    """Reads a target topic. On leaving, it waits until its completions are sent."""

    def __init__(self, bootstrap_servers: str, topic: str, sender: Sender) -> None:
        super().__init__(bootstrap_servers, [topic])
        self._sender = sender

    def take(self, record: Record, _now: int, /) -> None:
        """Send the completions that a message asks for."""
        control = control_of(record)
        wish = dict(record.headers).get(ACK)
        attempt = int(control["attempt"] or 0)
        if wish in (None, b"ignore") or (wish == b"second" and attempt == 1):
            return
        headers = [
            ("schedule-command", b"complete"),
            *(
                (f"schedule-{name}", (control[name] or "").encode())
                for name in ("id", "tenant", "firing-id", "attempt")
            ),
            ("schedule-completion", b"failure" if wish == b"failure" else b"success"),
        ]
        for _ in range(2 if wish == b"twice" else 1):
            self._sender.send(record.key or b"", b"", list(headers))

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        super().__exit__(kind, error, traceback)
        self._sender.flush()
