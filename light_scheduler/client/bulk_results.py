"""The answers of several commands topics to one bulk command, and what they add up to."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from typing import Any, TypeVar

import msgspec
from msgspec import UNSET

from light_scheduler.errors import ClientError, SchedulerError
from light_scheduler.model import FAILURES, Result
from light_scheduler.model.tenant_rules import QUOTA

from .errors import ResultTimeout
from .receipt import Receipt

T = TypeVar("T")

Answer = Result | Receipt | SchedulerError
"""A result, a receipt if none was awaited, or an error."""


async def answers_of(doing: Mapping[str, Awaitable[T]]) -> dict[str, T | SchedulerError]:
    """Return what came of each, by topic, once all have ended: none is broken off for another.

    Raises the first error that is no SchedulerError.
    """
    done = await asyncio.gather(*doing.values(), return_exceptions=True)
    answers: dict[str, T | SchedulerError] = {}
    for topic, each in zip(doing, done, strict=True):
        if isinstance(each, BaseException) and not isinstance(each, SchedulerError):
            raise each
        answers[topic] = each
    return answers


@dataclass(frozen=True)
class BulkAnswers:
    """What came of a bulk command in each topic."""

    by_topic: Mapping[str, Answer]

    @property
    def carried_out(self) -> list[str]:
        """The topics in which it was carried out."""
        return self._where(lambda answer: isinstance(answer, Result) and answer.outcome not in FAILURES)

    @property
    def sent(self) -> list[str]:
        """The topics that have it, and have not answered."""
        return self._where(lambda answer: isinstance(answer, Receipt | ResultTimeout))

    @property
    def refused(self) -> dict[str, Result]:
        """The results of topics that refused it."""
        return {
            topic: answer
            for topic, answer in self.by_topic.items()
            if isinstance(answer, Result) and answer.outcome in FAILURES
        }

    @property
    def failed(self) -> dict[str, SchedulerError]:
        """The errors of topics that it could not be sent to, or perhaps not."""
        return {
            topic: answer
            for topic, answer in self.by_topic.items()
            if isinstance(answer, SchedulerError) and not isinstance(answer, ResultTimeout)
        }

    @property
    def unanswered(self) -> dict[str, ResultTimeout]:
        """The errors of topics that have it, and did not answer in time."""
        return {topic: answer for topic, answer in self.by_topic.items() if isinstance(answer, ResultTimeout)}

    def as_one(self) -> Result | Receipt:
        """Return the result of all topics, or the receipt of the first one.

        Raises the error of the only topic, or NotInAllTopics if one of several did not answer.
        """
        first, *others = self.by_topic.values()
        if not others and isinstance(first, SchedulerError):
            raise first
        if self.failed or self.unanswered:
            raise NotInAllTopics(self)
        results = {topic: answer for topic, answer in self.by_topic.items() if isinstance(answer, Result)}
        if results:
            return of_all_topics(results)
        assert isinstance(first, Receipt), "without errors and results, only receipts are left"
        return first

    def in_words(self, name: Callable[[str], str] = str) -> str:
        """Return what came of the command in each topic, as sentences. `name` names a field as its sender knows it."""
        sentences = []
        if self.carried_out:
            sentences.append(f"It was carried out in {', '.join(self.carried_out)}.")
        if receipts := [topic for topic in self.sent if topic not in self.unanswered]:
            sentences.append(f"It was sent to {', '.join(receipts)}, and will be carried out.")
        for topic, result in self.refused.items():
            reason = (result.reason or result.outcome.value).removesuffix(".")
            sentences.append(
                f"{topic} refused it: {reason if result.field is None else f'{name(result.field)}: {reason}'}."
            )
        errors = {**self.unanswered, **self.failed}
        return " ".join([*sentences, *(f"{topic}: {str(error).removesuffix('.')}." for topic, error in errors.items())])

    def _where(self, is_so: Callable[[Answer], bool]) -> list[str]:
        return [topic for topic, answer in self.by_topic.items() if is_so(answer)]


class NotInAllTopics(ClientError):
    """A bulk command went to several topics, and not all answered it. `answers` says what came of it in each."""

    def __init__(self, answers: BulkAnswers) -> None:
        super().__init__(answers.in_words().removesuffix("."))
        self.answers = answers


def is_over_quota(result: Result) -> bool:
    """Return whether a command was refused because of what its tenant has or does just now."""
    return result.field is not None and result.field.startswith(QUOTA)


def of_all_topics(results: Mapping[str, Result]) -> Result:
    """Return a failure if any topic had one, else the first result. Its count is that of all topics.

    A failure that passes by itself only counts if no topic has another one. `results` are by topic. With several
    topics, a reason names its topic, and a failure says where the command was carried out all the same.
    """
    if len(results) == 1:
        return next(iter(results.values()))
    failed = sorted((result for result in results.values() if result.outcome in FAILURES), key=is_over_quota)
    applied = {topic: result for topic, result in results.items() if result.outcome not in FAILURES}
    reasons = [f"{topic}: {result.reason}" for topic, result in results.items() if result.reason is not None]
    if failed and applied:
        reasons.append(f"it was carried out in {', '.join(applied)}")
    counts = [result.count for result in applied.values() if result.count is not UNSET]
    changes: dict[str, Any] = {"count": sum(counts)} if counts else {}
    first = (failed or [*results.values()])[0]
    return msgspec.structs.replace(first, reason="; ".join(reasons) or None, **changes)
