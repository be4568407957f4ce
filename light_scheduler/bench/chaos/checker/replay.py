"""Replays the commands topic in log order together with the answers, to find all lives and their ends."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping

from .lives import DEFAULT_GRACE, Completion, Life
from .records import (
    PROMISE,
    Answer,
    Record,
    RecordId,
    control_of,
    digest,
    kafka_partition,
    user_headers,
)

DEFAULT_TENANT = "default"

Trouble = tuple[str, str, str]
"""(kind of fault, of which schedule or command, description)."""


class Replay:
    """Processes commands one by one. `partitions` is the number of partitions of each target topic."""

    def __init__(self, answers: Mapping[RecordId, Answer], partitions: Mapping[str, int]) -> None:
        self.lives: dict[RecordId, Life] = {}
        self.rejected: set[RecordId] = set()
        self.refused: set[RecordId] = set()
        self._answers = answers
        self._partitions = partitions
        self._current: dict[tuple[str, str], Life] = {}

    def take(self, record: Record) -> Iterator[Trouble]:
        """Process the next command of its partition. Yield errors in its answer."""
        control = control_of(record)
        place = (record.partition, record.offset)
        answer = self._answers.get(place)
        promise = next((value for name, value in record.headers if name == PROMISE), None)
        name = f"command {place[0]}:{place[1]}"
        if "reply-topic" in control and answer is None:
            yield "missing", name, "was never answered"
        if (promise == b"rejected") is not (answer is not None and answer.outcome == "rejected"):
            if promise != b"rejected" or answer is not None:
                yield "wrong", name, f"answered {answer}, and should {'not ' * (promise != b'rejected')}be rejected"
            return
        if promise == b"rejected":
            self.rejected.add(place)
            return
        tenant = control.get("tenant") or DEFAULT_TENANT
        id = control.get("id") or (record.key or b"").decode()
        life = self._current.get((tenant, id))
        command = control.get("command") or _implied(record, control)
        if command == "schedule":
            yield from self._schedule(record, control, tenant, id, life, answer)
            if promise == b"refused" and place in self.lives:
                self.lives[place].refused = True
                self.refused.add(place)
        elif answer is None:
            yield "wrong", name, f"the checker cannot follow a {command} without an answer"
        elif life is None:
            if answer.outcome != "not_found":
                yield "wrong", name, f"answered {answer.outcome}, and nothing of {tenant}/{id} was pending"
        else:
            yield from self._control(record, command, control, life, answer)

    def close(self) -> None:
        """End all open lives, when no work is left."""
        for life in self.lives.values():
            if life.end == "open":
                life.end = "done"

    # -- one command --------------------------------------------------------------------------------------------------

    def _schedule(
        self,
        record: Record,
        control: dict[str, str | None],
        tenant: str,
        id: str,
        life: Life | None,
        answer: Answer | None,
    ) -> Iterator[Trouble]:
        place = (record.partition, record.offset)
        outcome = "scheduled" if answer is None else answer.outcome
        if outcome not in ("scheduled", "updated"):
            expected = {"keep": "kept", "fail": "conflict"}.get(control.get("on-conflict") or "")
            if outcome != expected or life is None:
                yield "wrong", f"command {place[0]}:{place[1]}", f"answered {outcome}"
            return
        version = None if answer is None else answer.version
        if outcome == "updated":
            if life is None:
                yield "wrong", f"command {place[0]}:{place[1]}", "answered updated, and nothing was pending"
            else:
                life.finish("replaced", answer)
                if life.version is not None and version != life.version + 1:
                    yield "wrong", life.name, f"version {version} follows {life.version}"
        else:
            if version not in (None, 1):
                yield "wrong", f"command {place[0]}:{place[1]}", f"scheduled as version {version}"
            if life is not None:
                self._gone(life, answer)
        new = self._life(record, control, tenant, id, version)
        self.lives[place] = new
        self._current[tenant, id] = new

    def _control(
        self, record: Record, command: str, control: dict[str, str | None], life: Life, answer: Answer
    ) -> Iterator[Trouble]:
        allowed = {
            "cancel": "cancelled",
            "pause": "paused",
            "resume": "resumed",
            "trigger": "triggered",
            "reschedule": "rescheduled",
            "complete": "completed",
        }
        outcome = answer.outcome
        if outcome == "not_found":
            # `complete` is also not found if its firing does not wait for a completion; `trigger`, if the firing was
            # delivered and waits for its completion.
            if command != "complete" and (command != "trigger" or life.ack_timeout is None):
                self._gone(life, answer)
                del self._current[life.tenant, life.id]
            return
        if outcome == "conflict" and command == "complete":
            return
        if outcome != allowed[command]:
            yield "wrong", life.name, f"{command} was answered {outcome}"
            return
        match command:
            case "cancel":
                life.finish("cancelled", answer)
                del self._current[life.tenant, life.id]
            case "pause":
                life.quiet = [*(life.quiet or ()), (answer.at, None)]
            case "resume":
                # Released firings may precede the answer in the log, since both are in one transaction.
                life.quiet = [(begun, ended or record.timestamp) for begun, ended in life.quiet or ()]
            case "trigger":
                life.triggers = (*life.triggers, record.timestamp)
            case "reschedule":
                if life.version is not None and answer.version != life.version + 1:
                    yield "wrong", life.name, f"version {answer.version} follows {life.version}"
                new = life.rescheduled(int(control["at"] or 0), answer)
                self.lives[life.place] = self._current[life.tenant, life.id] = new
            case "complete":
                due = int((control["firing-id"] or "").rpartition("@")[2])
                attempt, succeeded = int(control["attempt"] or 0), control.get("completion") != "failure"
                completion = Completion(due, attempt, succeeded, record.timestamp)
                life.completions = [*(life.completions or ()), completion]

    def _gone(self, life: Life, answer: Answer | None) -> None:
        """Note that an answer shows that a life had no firing left: all of its deliveries came before."""
        life.end = "done"
        life.gone_at = None if answer is None else answer.at

    def _life(self, record: Record, control: dict[str, str | None], tenant: str, id: str, version: int | None) -> Life:
        topic = control["target-topic"] or ""
        key = record.key
        if "target-key" in control:
            text = control["target-key"]
            key = None if text is None else text.encode()
        chosen = control.get("target-partition")
        partitions = self._partitions.get(topic, 1)
        life = Life(
            place=(record.partition, record.offset),
            tenant=tenant,
            id=id,
            form="once",
            contents=digest(key, record.value, user_headers(record)),
            partition=int(chosen) if chosen else kafka_partition(id.encode() if key is None else key, partitions),
            version=version,
        )
        life.jitter = int(control.get("jitter") or 0)
        life.misfire = control.get("misfire") or life.misfire
        life.grace = int(control.get("misfire-grace") or DEFAULT_GRACE)
        life.most = int(control["max-firings"] or 0) if "max-firings" in control else None
        if "ack-timeout" in control:
            life.ack_timeout = int(control["ack-timeout"] or 0)
            life.max_attempts = int(control.get("max-attempts") or life.max_attempts)
        _set_times(life, control, record.timestamp)
        return life


def _implied(record: Record, control: dict[str, str | None]) -> str:
    """Return the implied command: a record without one is a cancel if it has neither value nor time, else a
    schedule."""
    is_timed = not control.keys().isdisjoint({"at", "after", "every", "cron", "backoff"})
    return "schedule" if record.value is not None or is_timed else "cancel"


def _set_times(life: Life, control: dict[str, str | None], recorded_at: int) -> None:
    if control.get("every"):
        interval = int(control["every"] or 0)
        life.due = recorded_at + interval
        if control.get("mode") == "fixed-delay":
            life.form, life.steps = "delay", (interval,)
        else:
            life.form, life.grid = "grid", (recorded_at, interval)
    elif control.get("cron"):
        interval = cron_interval(control["cron"] or "", control.get("cron-dialect") or "unix")
        life.form, life.grid = "grid", (0, interval)
        life.due = (recorded_at // interval + 1) * interval
    elif control.get("backoff"):
        life.form, life.steps = "backoff", tuple(map(int, (control["backoff"] or "").split(",")))
        life.due = recorded_at + life.steps[0]
    elif control.get("at"):
        life.due = int(control["at"] or 0)
    else:
        life.due = recorded_at + int(control.get("after") or 0)


def cron_interval(expression: str, dialect: str) -> int:
    """Return the interval (ms) of an expression that fires every few seconds or minutes, counted from the hour.

    A chaos run uses no other expressions: `* * * * * */5`, `0/5 * * * * ?`, `*/5 * * * * *` and `*/2 * * * *`.
    """
    fields = expression.split()
    if dialect == "cron4j" or len(fields) == 5:
        return _step(fields[0]) * 60_000
    return _step(fields[5] if dialect == "unix" else fields[0]) * 1_000


def _step(field: str) -> int:
    step = 1 if field == "*" else int(field.partition("/")[2])
    if 60 % step:
        raise ValueError(f"{field} is not the same interval over the end of a minute")
    return step


def answers_of(results: Iterable[tuple[RecordId, Answer]]) -> tuple[dict[RecordId, Answer], list[Trouble]]:
    """Return the answer to each command, and faults for commands with more than one answer."""
    answers: dict[RecordId, Answer] = {}
    troubles: list[Trouble] = []
    for place, answer in results:
        if place in answers:
            troubles.append(("duplicate", f"command {place[0]}:{place[1]}", "was answered twice"))
        answers[place] = answer
    return answers, troubles
