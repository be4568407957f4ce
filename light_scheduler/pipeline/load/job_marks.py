"""Marks for use by a job itself, outside of Spark's tasks, with errors in one line."""

from __future__ import annotations

import msgspec
from confluent_kafka import KafkaError, KafkaException

from light_scheduler.errors import JobError
from light_scheduler.pipeline.kafka.fetching import passes
from light_scheduler.pipeline.kafka.leaders import LEADERLESS

from .marks import Marks


class MarksAwayError(JobError):
    """Kafka does not answer for the topic of marks. The same load may succeed later."""

    retriable = True


class JobMarks(Marks):
    """Marks whose errors are JobErrors."""

    def read_on(self) -> None:
        """Read on as `Marks` does. Raises MarksAwayError, after which reading can be retried, or JobError for another
        failure."""
        try:
            super().read_on()
        except TimeoutError as error:
            raise MarksAwayError(f"topic {self.topic} cannot be read: {error}") from error
        except KafkaException as error:
            failure = MarksAwayError if _is_away(error.args[0]) else JobError
            raise failure(f"topic {self.topic} cannot be read: {_reason(error.args[0])}") from error

    def write(self, key: bytes, mark: msgspec.Struct) -> None:
        """Write as `Marks` does. Raises JobError; then the mark may have been written, or may be written later."""
        try:
            super().write(key, mark)
        except TimeoutError as error:
            raise JobError(f"topic {self.topic} cannot be written: {error}") from error
        except KafkaException as error:
            raise JobError(f"topic {self.topic} cannot be written: {_reason(error.args[0])}") from error


def _is_away(error: KafkaError) -> bool:
    return passes(error) or error.code() in (*LEADERLESS, KafkaError.REQUEST_TIMED_OUT)


def _reason(error: KafkaError) -> str:
    if error.code() == KafkaError.TOPIC_AUTHORIZATION_FAILED:
        return f"{error.str()}. A load needs the rights Read and Write"
    return error.str()
