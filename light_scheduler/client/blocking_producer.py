"""Sends commands for any number of threads: in batches, with bounded memory, and tracks undelivered ones."""

from __future__ import annotations

import logging
from collections.abc import Mapping
from concurrent.futures import Future
from contextlib import suppress
from threading import Lock, Thread
from typing import Any

from confluent_kafka import KafkaException, Producer

from light_scheduler.connection.renewed_files import Renewed
from light_scheduler.errors import BrokerError, ClientError

from .commands import CommandToSend
from .deadline import Deadline
from .librdkafka_errors import failure, librdkafka_errors
from .receipt import Receipt

SILENT = logging.Logger("light_scheduler.client", logging.CRITICAL + 1)
"""Discards librdkafka's log of each failed connection: the raised error already reports it."""

MOST_QUEUED = 100_000
MOST_QUEUED_KIB = 65_536
"""Maximum number of unacknowledged commands, and their size in KiB. Beyond that, senders wait."""

_BATCH_BYTES = 262_144
_LINGER_MS = 1
_POLL_S = 0.1

RENEWAL_S = 10.0
"""When certificates or login are renewed: how long the old client may take to finish."""

log = logging.getLogger(__name__)


class BlockingProducer:
    """An idempotent producer, with all acknowledgements and Kafka's own partitioner (murmur2).

    When the options change, a new client replaces the current one. The current one first finishes its queue, and
    nothing is queued meanwhile, so no command overtakes another and none is sent twice. Commands that the broker does
    not acknowledge within `RENEWAL_S` fail.
    """

    def __init__(self, options: Renewed[Mapping[str, Any]], max_request_bytes: int) -> None:
        self._queued: dict[Future[Receipt], CommandToSend] = {}
        self._lock = Lock()
        self._is_closing = False
        self._is_renewing = False
        self._ended = False
        self._options = options
        self._max_request_bytes = max_request_bytes
        self._used = options.current()
        self.client = self._new_client(self._used)
        self._thread = Thread(target=self._serve, name="light-scheduler producer", daemon=True)
        self._thread.start()

    def send(self, topic: str, command: CommandToSend, deadline: Deadline) -> Future[Receipt]:
        """Queue a command. The future yields its receipt or a BrokerError. Waits while the queue is full.

        Raises BrokerError if the queue stays full, InvalidCommand if the command is too large, ClientError after
        `close`.
        """
        future: Future[Receipt] = Future()
        doing = f"cannot send the command for {command.tenant}/{command.id}"

        def delivered(error: Any, message: Any) -> None:
            self._queued.pop(future, None)
            if error is None:
                future.set_result(Receipt(command.tenant, command.id, message.partition(), message.offset()))
            else:
                future.set_exception(failure(doing, error))

        arguments = {
            "value": command.value,
            "key": command.key,
            "headers": command.headers,
            "partition": -1 if command.partition is None else command.partition,
            "on_delivery": delivered,
        }
        while not self._is_queued(topic, arguments, future, command, doing):
            if deadline.left == 0:
                raise BrokerError(f"{doing}: {self._obstacle}")
            self._poll(min(_POLL_S, deadline.left))
        return future

    def close(self, timeout: float) -> list[CommandToSend]:
        """Send the queue. Return the commands that the broker has not acknowledged within `timeout` seconds."""
        with self._lock:
            self._is_closing = True
        left = self._drained(timeout)
        self._ended = True
        self._thread.join()
        return left

    @property
    def _obstacle(self) -> str:
        if self._is_renewing:
            return "the client waits for the broker's answers, to go on with renewed certificates"
        return f"{MOST_QUEUED:,} commands or 64 MiB of them wait for the broker already"

    def _is_queued(
        self, topic: str, arguments: dict[str, Any], future: Future[Receipt], command: CommandToSend, doing: str
    ) -> bool:
        with self._lock:
            if self._is_closing:
                raise ClientError("the client was closed")
            if self._is_renewing:
                return False
            self._queued[future] = command
            try:
                with librdkafka_errors(doing):
                    self.client.produce(topic, **arguments)
            except BaseException as error:
                del self._queued[future]
                if isinstance(error, BufferError):
                    return False
                raise
            return True

    def _new_client(self, options: Mapping[str, Any]) -> Producer:
        return Producer(
            {
                "enable.idempotence": True,
                "acks": "all",
                "partitioner": "murmur2_random",
                "linger.ms": _LINGER_MS,
                "batch.size": _BATCH_BYTES,
                "message.max.bytes": self._max_request_bytes,
                "queue.buffering.max.messages": MOST_QUEUED,
                "queue.buffering.max.kbytes": MOST_QUEUED_KIB,
                **options,
            },
            logger=SILENT,
        )

    def _drained(self, timeout: float) -> list[CommandToSend]:
        """Send the queue. Abandon and return the commands that the broker has not acknowledged within `timeout`
        seconds."""
        with suppress(KafkaException):
            self.client.flush(timeout)
        left = list(self._queued.values())
        if left:
            self.client.purge()
            self.client.flush(_POLL_S)
        return left

    def _serve(self) -> None:
        while not self._ended:
            self._poll(_POLL_S)
            options = self._options.current()
            if options is not self._used and not self._is_closing:
                self._used = options
                self._renew()

    def _renew(self) -> None:
        """Replace the current client by a new one."""
        try:
            client = self._new_client(self._used)
        except KafkaException as error:
            log.warning("the client goes on with its old certificates and login: %s", error.args[0].str())
            return
        with self._lock:
            self._is_renewing = True
        left = self._drained(RENEWAL_S)
        with self._lock:
            self.client, self._is_renewing = client, False
        if left:
            log.warning("%d commands were not acknowledged before the client's certificates were renewed", len(left))

    def _poll(self, seconds: float) -> None:
        """Process acknowledgements. After a permanent error none will arrive, so all waiting commands fail.

        An example is a user without any right to write, for which librdkafka asks before there is anything to send.
        """
        try:
            self.client.poll(seconds)
        except KafkaException:  # a permanent error, which `produce` raises from now on, too
            self.client.purge()
