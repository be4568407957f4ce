"""Waits for results in threads: one thread reads a partition of the results topic, and each call has a future."""

from __future__ import annotations

import itertools
import uuid
from collections.abc import Iterator
from concurrent.futures import Future
from contextlib import contextmanager
from threading import Lock, Thread

from light_scheduler.errors import BrokerError, FormatError
from light_scheduler.model import ReplyTo, Result
from light_scheduler.wire import correlation_id_of, decode_result

from .blocking_reading import BlockingReader


class BlockingAnswers:
    """The results of one client's commands, distinguished from others' by correlation ids."""

    def __init__(self, reader: BlockingReader, topic: str, partition: int) -> None:
        self._reader = reader
        self._place = topic, partition
        self._waiting: dict[bytes, Future[Result]] = {}
        self._prefix = uuid.uuid4().hex
        self._numbers = itertools.count(1)
        self._lock = Lock()
        self._failure: BrokerError | None = None
        self._thread = Thread(target=self._read, name="light-scheduler results", daemon=True)
        self._thread.start()

    @property
    def running(self) -> bool:
        """Whether results are still being read. If not, a new reader is needed."""
        return self._failure is None

    @contextmanager
    def expected(self) -> Iterator[tuple[ReplyTo, Future[Result]]]:
        """Yield the reply address for a command, and the future of its result. Raises BrokerError if reading has
        stopped."""
        correlation_id = f"{self._prefix}-{next(self._numbers)}".encode()
        future: Future[Result] = Future()
        with self._lock:
            if self._failure is not None:
                raise self._failure
            self._waiting[correlation_id] = future
        topic, partition = self._place
        try:
            yield ReplyTo(topic, correlation_id, partition), future
        finally:
            self._waiting.pop(correlation_id, None)

    def close(self) -> None:
        """Stop reading. Waiting callers get a BrokerError."""
        self._reader.stop()
        self._thread.join()

    def _read(self) -> None:
        cause = "the client was closed"
        try:
            for record in self._reader:
                future = self._waiting.pop(correlation_id_of(record.headers) or b"", None)
                if future is None:
                    continue
                try:
                    future.set_result(decode_result(record.value))
                except FormatError as error:
                    future.set_exception(error)
        except BaseException as error:
            cause = str(error) or type(error).__name__
            if not isinstance(error, BrokerError):
                raise
        finally:
            self._end(cause)

    def _end(self, cause: str) -> None:
        with self._lock:
            self._failure = BrokerError(f"results are no longer read: {cause}")
            waiting, self._waiting = self._waiting, {}
        for future in waiting.values():
            future.set_exception(self._failure)
        self._reader.close()
