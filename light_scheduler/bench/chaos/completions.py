"""The consumer that completes messages, as the header `chaos-ack` of each says.

`success` and `failure` complete every attempt so, `second` leaves the first attempt alone and completes the next,
`twice` completes each attempt two times, `ignore` none.
"""

from __future__ import annotations

import threading
from types import TracebackType
from typing import Self

from .checker.records import control_of
from .reading import places, reader, record_of
from .sending import Sender
from .workload import ACK


class Completer:
    """Reads a topic while the run goes on. A context manager; leaving it waits for what it has sent."""

    def __init__(self, bootstrap_servers: str, topic: str, sender: Sender) -> None:
        self._bootstrap_servers = bootstrap_servers
        self._topic = topic
        self._sender = sender
        self._stopping = threading.Event()
        self._thread = threading.Thread(target=self._run, name="completions", daemon=True)

    def _run(self) -> None:
        consumer = reader(self._bootstrap_servers)
        consumer.assign(places(consumer, self._topic))
        while not self._stopping.is_set():
            for message in consumer.consume(500, 0.05):
                if message.error() is None:
                    self._complete(message)
        consumer.close()

    def _complete(self, message: object) -> None:
        record = record_of(message)
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

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self._stopping.set()
        self._thread.join()
        self._sender.flush()
