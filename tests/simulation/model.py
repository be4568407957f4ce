"""What must have been delivered: the commands of a partition, the commits in their order, and ten lines in between.

It knows nothing of lanes, tables or recovery. A commit is what its transaction made visible at once; whatever happened
around it, the commits of a partition must be those of a scheduler that nothing ever happens to.
"""

from __future__ import annotations

from collections import Counter, deque
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import partial
from math import inf
from typing import Any

from aiokafka import TopicPartition

from light_scheduler.model.arrival import LOG
from light_scheduler.wire import partition_for
from light_scheduler.wire.handover import ADOPTED_FROM
from light_scheduler.wire.state import decode_entry

from .lending import Quota
from .log import POISON, Record, Transaction
from .many import CHANGES, Many, Owed, Sizes, kind_of, many_by_copy, many_of
from .moves import Moves, Pending
from .names import FRAIL, NAMES, TARGET
from .rates import Pace, answered_asks
from .records import (
    Sent,
    counts,
    header,
    is_for_many,
    is_handover,
    is_relayed,
    is_to_be_carried_out,
    json,
    place,
    recorded_at,
    sent,
    text,
    to,
)
from .ruled import Change, Timeline
from .unsent import Unsent
from .violation import Violation
from .waiting import Step, Waiting, steps_of

TOLD = {"scheduled", "updated", "cancelled", "paused", "resumed", "rejected", "fired", "dead_lettered", "moved"}
"""Events that history must have, each as often as it happened."""


@dataclass
class Partition:
    """The commands of one partition of so many, in order, as read_committed readers see them.

    `many` are those for many, of all partitions, by the record that was sent. Each counts from its place in `commands`;
    what it has changed may be told in a later commit: until then it is `owed`.
    """

    number: int
    partitions: int
    commands: Sequence[Record]
    many: dict[Sent, Many]
    """Bulk commands, by the record that was sent; copies of that count as it."""
    refusing: str | None = None
    """A topic that may refuse what it is sent."""
    rules: Timeline = field(default_factory=lambda: Timeline((), 0))
    stage_ahead_ms: int = 0
    moves: Moves | None = None
    """None: the topic never grows."""
    quota: Quota | None = None
    """None: partitions lend no room to each other."""
    partitions_at_first: int = 1 << 31
    """Partitions from that number on were added."""
    topic: str = NAMES.commands
    forwards: bool = True
    """Whether workers pass commands on that were sent to the wrong partition."""
    part_at: Callable[[int], float | None] = lambda _: 1.0
    """Which part of each rate it has at an instant (UTC epoch ms, by the brokers' clock).

    None: it was added, and schedules still move.
    """
    pace: Pace = field(default_factory=Pace)
    waiting: Waiting = field(default_factory=Waiting)
    pending: dict[str, Pending] = field(default_factory=dict)
    owed: list[Owed] = field(default_factory=list)
    taken: int = 0
    fired: int = 0
    decided_at: int = 0
    """When (ms) what is being committed was decided, or is to be visible if it was prepared ahead of that."""
    _part: float | None = None
    """Its part of each rate, at the time of the commit."""
    _catches_up: bool = False
    """Whether delayed commands may be left whose turn came before the lane had read its backlog."""
    _term: tuple[str, int] | None = None
    """The transactional id of the last commit and its epoch, which is another one after each take-over."""
    _leaving: list[Record] = field(default_factory=list)
    """Records of the commit by which schedules are moved, as far as they are not yet."""
    _counts_at: int = 0
    """When (ms) the command that is being carried out counts as recorded."""
    _last: dict[tuple[int, str], tuple[tuple[int, int], int]] = field(default_factory=dict)
    """(target partition, tenant, or "" for any) -> what was delivered last, by which commit."""

    def __post_init__(self) -> None:
        self.unsent = Unsent(self.number)

    @property
    def changelog(self) -> str:
        """The topic of its state."""
        return NAMES.changelog(self.topic)

    def follow(self, number: int, commit: Transaction, now: int) -> None:
        """Take one commit, made at `now` (ms); raise Violation if it is not what must follow."""
        happened: Counter[tuple[str, str]] = Counter()
        events = [json(record) for record in commit.records if record.topic == "app-history"]
        self.decided_at = max((record.timestamp for record in commit.records), default=now)
        self._note_quota()
        results = [json(record) for record in to(commit, "replies")]
        written, arrived = self.unsent.written(commit, self.changelog, self.topic)
        if self.moves is not None:
            self.moves.arrive(arrived)
        passed_on = [record for record in written if not is_handover(record)]
        self._leaving = [record for record in written if header(record, ADOPTED_FROM)]
        if not any(kind_of(record) == "part" for record in written):
            self._hand_over_all(happened)
        said = [((r["partition"], r["offset"]), str(r["outcome"])) for r in results if "count" not in r]
        said += [
            (sent(record), "relayed" if is_relayed(record) else "forwarded")
            for record in passed_on
            if not is_for_many(record)
        ]
        copies = [record for record in passed_on if is_for_many(record) and not counts(record)]
        self.pace.begin(commit.owner, self.decided_at)
        self._part = self.part_at(self.decided_at - commit.clock_ahead)
        is_behind = self._is_behind(commit)
        self._follow_term(commit)
        steps = deque(steps_of(commit, self.changelog))
        take = partial(self._take, number=number, now=now, happened=happened, said=said, copies=copies)
        if is_behind:
            self._leave(steps, take, self._leaves_at)
        else:
            self._go_on(steps, take)
        position = commit.group_offsets.get(TopicPartition(self.topic, self.number), -1)
        read: list[Record] = []
        while self.taken < len(self.commands) and self.commands[self.taken].offset < position:
            command = self.commands[self.taken]
            self.taken += 1
            read.append(command)
            tenant = header(command, "schedule-tenant")
            self._look(command, said)
            if steps and steps[0].joins == command.offset:
                rule, is_added = self.rules.at(tenant, self.decided_at), self.number >= self.partitions_at_first
                self.waiting.join(steps.popleft(), command, rule, is_added=is_added)
                self._leave(steps, take, self._leaves_at)
                continue
            if tenant in self.waiting.queues and (sent(command), "rejected") not in said:
                raise Violation(f"the command at {command.offset} overtakes {self.waiting.queues[tenant]}")
            self._counts_at = recorded_at(command)
            take(command)
        for tenant, asked_at in answered_asks(read, written):
            self.pace.look(tenant, asked_at, self.decided_at)
        self._hand_over_all(happened)
        if steps:
            raise Violation(f"{steps} were delayed, and were not read")
        if said or copies:
            raise Violation(f"{said} were said of commands that there are not; copies missing or too many: {copies}")
        self._deliver(commit, number, now, happened)
        self._check_history(events, happened, number)
        for offset, partition, changed in filter(None, map(counts, passed_on)):
            self._check_done((partition, offset), changed)
        told = Counter((e["event"], e["id"], e["count"]) for e in events if "count" in e)
        if told != Counter(self._check_total(result) for result in results if "count" in result):
            raise Violation(f"history says {told} of bulk commands; the answers are others: {results}")
        self._note_quota()

    def _deliver(self, commit: Transaction, number: int, now: int, happened: Counter[tuple[str, str]]) -> None:
        """Take the firings and dead letters of a commit."""
        for firing in commit.records:
            if firing.topic in (TARGET, FRAIL):
                self._fire(firing, number, now)
                happened["fired", header(firing, "schedule-id")] += 1
            if firing.topic == "app-dead-letters" and self._take_dead_letter(firing):
                happened["dead_lettered", header(firing, "dead-letter-id")] += 1
        if any(event == "fired" for event, _ in happened):
            self._check_backlog(commit.backlog_end[self.topic, self.number])

    def _check_history(self, events: Sequence[Any], happened: Counter[tuple[str, str]], number: int) -> None:
        """History tells what happened, as often; besides, deletions with a tenant and what bulk commands changed."""
        history = Counter((e["event"], e["id"]) for e in events if e["event"] in TOLD and "count" not in e)
        for event, id in (history - happened).elements():
            if event == "cancelled" and self._is_deleted(id, self.decided_at):
                del self.pending[id]
            else:
                self._pay(event, id, number)
            happened[event, id] += 1
        if history != happened:
            raise Violation(f"history says {dict(history)}; what happened is {dict(happened)}")

    def _leave(self, steps: deque[Step], take: Callable[[Record], None], counts_at: Callable[[str], int]) -> None:
        """Carry out what leaves its queue before the next command joins one: after another only in a backlog."""
        while steps and steps[0].joins is None:
            at, command = counts_at(steps[0].tenant), self.waiting.leave(steps.popleft())
            self._counts_at = max(at, recorded_at(command))
            take(command)

    def _go_on(self, steps: deque[Step], take: Callable[[Record], None]) -> None:
        """Carry out what leaves its queue once the backlog is read: at its turn if the lane catches up, or else now.

        It has caught up when nothing is left whose turn has come; then it looks at what waits.
        """
        self._leave(steps, take, lambda tenant: self._turn(tenant) or self.decided_at)
        waits_on = [each for each in self.waiting.queues if (self._turn(each) or inf) > self.decided_at]
        for tenant in waits_on:
            self.pace.look(tenant, self.decided_at, self.decided_at)
        self._catches_up &= len(waits_on) < len(self.waiting.queues)

    def _turn(self, tenant: str) -> int | None:
        """Return when (ms) the next delayed command of a tenant has its turn; None if the lane does not catch up."""
        rule = self.rules.at(tenant, self.decided_at)
        rate = None if rule is None else rule.commands_per_second
        if not self._catches_up or rate is None or self._part is None:
            return None
        return self.pace.turn(tenant, rate * self._part)

    def _follow_term(self, commit: Transaction) -> None:
        """A lane that has taken over, again or for the first time, catches up if it has a backlog."""
        term = commit.transactional_id, commit.epoch
        if term != self._term:
            self._term = term
            position = self.commands[self.taken - 1].offset + 1 if self.taken else 0
            self._catches_up |= position < commit.backlog_end.get((self.topic, self.number), 0)

    def _look(self, command: Record, said: Sequence[tuple[Sent, str]]) -> None:
        """A command is read. Where those above a rate wait, it is looked at the rate even if it is passed on then."""
        tenant = header(command, "schedule-tenant")
        rule = self.rules.at(tenant, self.decided_at)
        if rule is None or rule.commands_per_second is None:
            return
        is_passed_on = any((sent(command), outcome) in said for outcome in ("forwarded", "relayed"))
        may_wait = rule.delayed_above is not None or self.number >= self.partitions_at_first
        if not is_to_be_carried_out(command) or (is_passed_on and not may_wait):
            return
        if tenant not in self.waiting.queues:
            self.pace.look(tenant, recorded_at(command), self.decided_at)
        elif self._catches_up:
            self.pace.meet(tenant, recorded_at(command), self.decided_at)

    def _is_behind(self, commit: Transaction) -> bool:
        """Return whether a lane still reads what waited when it took over."""
        end = commit.backlog_end.get((self.topic, self.number), 0)
        return self.taken < len(self.commands) and self.commands[self.taken].offset < end

    def _leaves_at(self, tenant: str) -> int:
        """Return when (ms) a command leaves its queue in a backlog: when the next of its tenant was recorded."""
        following = (each for each in self.commands[self.taken :] if header(each, "schedule-tenant") == tenant)
        return next(map(recorded_at, following), self.decided_at)

    def _take(
        self,
        command: Record,
        number: int,
        now: int,
        happened: Counter[tuple[str, str]],
        said: list[tuple[Sent, str]],
        copies: list[Record],
    ) -> None:
        """Carry out a command that was read, or was delayed; what is said of it is taken out of `said`."""
        if is_handover(command):
            self._adopt(command, number)
            return
        if self.moves is not None and (sent(command), "relayed") in said:
            said.remove((sent(command), "relayed"))
            return
        if is_for_many(command):
            self._take_for_many(command, copies, happened)
            return
        is_forwarded = (sent(command), "forwarded") in said
        is_rejected = (sent(command), "rejected") in said
        outcome = self._outcome(command, number, happened, is_forwarded=is_forwarded, is_rejected=is_rejected)
        answer = sent(command), outcome
        if self.moves is not None and answer[1] != "forwarded":
            begun = (each for each in self.many.values() if each.has_begun(id_of(command), self.number, self.growth))
            self.moves.answer(command, self.partitions, begun)
            self.moves.hold(text(command.key), self.number, self.pending)
        if answer not in said:
            raise Violation(f"{answer} has to come next, and is not among {said}")
        said.remove(answer)
        if outcome not in ("forwarded", "rejected"):
            self.pace.note(header(command, "schedule-tenant"), self._counts_at, self.decided_at)

    def _hand_over_all(
        self, happened: Counter[tuple[str, str]], is_next: Callable[[Record], bool] = lambda _: True
    ) -> None:
        """Schedules are moved, all or those that are next: some are before a bulk command is carried out."""
        for record in filter(is_next, list(self._leaving)):
            self._leaving.remove(record)
            happened["moved", self._hand_over(record)] += 1

    def _hand_over(self, record: Record) -> str:
        """A schedule is moved, as it is; return its id."""
        entry, moves = decode_entry(record.value or b""), self.moves
        schedule, id = entry.schedule, entry.schedule.id
        pending = self.pending.pop(id, None)
        said = schedule.version, entry.progress.due, schedule.payload, entry.progress.paused
        if moves is None or pending is None or said != (pending.version, pending.due, pending.payload, pending.paused):
            raise Violation(f"{id} was moved as {said}; pending was {pending}")
        moves.holders[id] = place(record)
        moves.moved[place(record)] = pending
        return id

    def _adopt(self, record: Record, number: int) -> None:
        if not header(record, ADOPTED_FROM):
            return
        assert self.moves is not None
        id = text(record.key)
        pending = self.moves.moved.pop(place(record), None)
        if pending is None or self.moves.holders.get(id) != place(record) or id in self.pending:
            raise Violation(f"{id} was taken over, and is {self.moves.holders.get(id)}")
        self.moves.holders[id] = self.number
        self.pending[id] = pending._replace(offset=pending.offset - LOG, accepted=number, adopted=record.offset)

    def _take_for_many(self, command: Record, copies: list[Record], happened: Counter[tuple[str, str]]) -> None:
        """Do what a bulk command does, and take the copies that it makes out of `copies`."""
        if counts(command):
            return
        if sent(command) == place(command):
            self.pace.note(header(command, "schedule-tenant"), self._counts_at, self.decided_at)
        made = [copy for copy in copies if sent(copy) == place(command)]
        copies[:] = [copy for copy in copies if copy not in made]
        follows = {copy.partition: copy.offset for copy in made if kind_of(copy) == "part"}
        self._hand_over_all(happened, lambda leaving: leaving.offset < follows.get(leaving.partition, 0))
        many = many_of(self.many, command)
        verb, tenant = many.verb, header(command, "schedule-tenant")
        begun = many.begin(command, made, self.growth, self.number)
        if sent(command) == place(command) and self.moves is not None:
            many.due = {
                id: pending
                for id, pending in self.moves.pending().items()
                if pending.tenant == tenant and many.names(id) and changes(pending, verb)
            }
        if begun is None:
            return
        for each, pending in list(self.pending.items()):
            if pending.tenant != tenant or not many.names(each) or pending.adopted > command.offset:
                continue
            if begun.former is not None and self.growth.former_of(each, self.number) != begun.former:
                continue
            if self.moves is not None and self.moves.last.get((each, many.origin[0]), -1) > many.origin[1]:
                raise Violation(f"{many.origin} changes {each} after a later command")
            if self._change(each, verb):
                for other in self.many.values():
                    if other is not many:
                        other.due.pop(each, None)
                if self.moves is not None:
                    self.moves.hold(each, self.number, self.pending)
                self.owed.append(Owed(CHANGES[verb], each, many.origin, begun.former))

    @property
    def growth(self) -> Sizes:
        """How many partitions the topic has at first and at last."""
        return Sizes(min(self.partitions_at_first, self.partitions), self.partitions)

    def _change(self, id: str, verb: str) -> bool:
        """Cancel, pause or resume what is pending; tell whether that changes it."""
        current = self.pending[id]
        if verb == "cancel":
            del self.pending[id]
            return True
        self.pending[id] = current._replace(paused=verb == "pause")
        return self.pending[id] != current

    def _pay(self, event: str, id: str, number: int) -> None:
        owed = next((owed for owed in self.owed if (owed.event, owed.id) == (event, id)), None)
        if owed is None:
            raise Violation(f"history says {event} of {id}, which did not happen")
        self.owed.remove(owed)
        self.many[owed.origin].change(id, self.number, owed.former)
        if id in self.pending:
            self.pending[id] = self.pending[id]._replace(accepted=number)

    def _check_done(self, to: Sent, changed: int) -> None:
        many = self.many[to] if to in self.many else many_by_copy(self.many, to)
        many.report(to, self.number, changed, self.owed)

    def _check_total(self, result: dict[str, Any]) -> tuple[str, str, int]:
        many = self.many[result["partition"], result["offset"]]
        expected = (CHANGES[many.verb], many.id, many.changed.total())
        if (result["outcome"], many.id, result["count"]) != expected:
            raise Violation(f"{result} was answered of {many}")
        many.answer(self.number, self.owed)
        left = {} if self.moves is None else self.moves.pending()
        still = {id: left[id] for id, was in many.due.items() if id in left and left[id].version == was.version}
        if missed := [id for id, pending in still.items() if changes(pending, many.verb)]:
            raise Violation(f"{missed} were there before {many.origin}, and it has missed them")
        return expected

    def _outcome(
        self, command: Record, number: int, happened: Counter[tuple[str, str]], *, is_forwarded: bool, is_rejected: bool
    ) -> str:
        id, kind = text(command.key), header(command, "kind")
        for many in self.many.values():
            many.touched(id)
        current = self.pending.get(id)
        outcome = told = "rejected"
        target = header(command, "schedule-target-topic") if kind in ("schedule", "keep", "fail") else None
        rule = self.rules.at(header(command, "schedule-tenant"), self.decided_at)
        if target == "" and rule is not None and rule.default_target is not None:
            target = rule.default_target
        if target == "" or (rule is not None and rule.rejects(target, command.value)):
            kind = "invalid"
        is_home = not self.forwards or partition_for(command.key or b"", self.partitions) == self.number
        if self.moves is not None:  # what a lane knows of partitions that were added is its own affair
            is_home = not is_forwarded
        if is_rejected and kind != "invalid" and rule is not None and rule.rejected_above is not None:
            kind = "invalid"
        if kind != "invalid" and not current and not is_home and sent(command) == place(command):
            outcome, told = "forwarded", "moved"
        elif kind in CHANGES:
            outcome = CHANGES[kind] if current else "not_found"
            told = outcome if current and self._change(id, kind) else ""
            if kind == "resume" and told:
                self.pending[id] = self.pending[id]._replace(accepted=number)
        elif kind != "invalid":
            if current and kind in ("keep", "fail"):
                return "kept" if kind == "keep" else "conflict"
            tenant = header(command, "schedule-tenant")
            if current is None and rule is not None and not self._has_room(rule, tenant, is_rejected=is_rejected):
                happened["rejected", id] += 1
                return "rejected"
            version = current.version + 1 if current else 1
            self.pending[id] = Pending(
                version,
                int(header(command, "due")),
                command.value,
                command.offset,
                number,
                tenant,
                target=target or "",
                partition=None if rule is None else rule.partition,
            )
            outcome = told = "updated" if current else "scheduled"
        if told:
            happened[told, id] += 1
        return outcome

    def _has_room(self, rule: Change, tenant: str, *, is_rejected: bool) -> bool:
        """Return whether a schedule more may be pending; with lending that is what was said, if it may be."""
        pending = sum(each.tenant == tenant for each in self.pending.values())
        if self.quota is not None and rule.max_pending is not None:
            self.quota.judge(rule, tenant, pending, self.decided_at, is_rejected=is_rejected)
            return not is_rejected
        return rule.has_room(pending, self.number, self.partitions)

    def _note_quota(self) -> None:
        if self.quota is not None:
            for tenant in {each.tenant for each in self.pending.values()}:
                self.quota.note(self.rules.at(tenant, self.decided_at), tenant, self.decided_at)

    def _fire(self, firing: Record, number: int, now: int) -> None:
        id = header(firing, "schedule-id")
        due = self.pending.pop(id, None)
        if self.moves is not None and self.moves.holders.pop(id, self.number) != self.number:
            raise Violation(f"{id} was delivered by {self.number}, which does not have it")
        said = int(header(firing, "schedule-version")), int(header(firing, "schedule-due"))
        if (
            due is None
            or due.paused
            or firing.topic != due.target
            or due.partition not in (None, firing.partition)
            or said != (due.version, due.due)
            or firing.value != due.payload
        ):
            raise Violation(f"{id} was delivered as {said} with {firing.value!r}; pending was {due}")
        if now < due.due or firing.timestamp < due.due or int(header(firing, "schedule-fired-at")) < due.due:
            raise Violation(f"{id} was delivered early")
        self._check_rules(id, due)
        order = due.due, due.offset
        self.fired += 1
        if firing.topic == FRAIL:  # some of its partitions wait, and others go on
            return
        goes_on = any((owed.event, owed.id) == ("resumed", id) for owed in self.owed)  # with this commit
        for tenant in ("", header(firing, "schedule-tenant")):
            last, last_number = self._last.get((firing.partition, tenant), ((0, 0), 0))
            late = order < last and due.accepted <= last_number and due.payload != POISON and not goes_on
            if late and (tenant or last_number == number):  # one tenant may be ahead of another, but not in one commit
                raise Violation(f"{id}, due {order}, was delivered after what was due {last}")
            self._last[firing.partition, tenant] = order, number

    def _take_dead_letter(self, letter: Record) -> bool:
        if header(letter, "dead-letter-cause") == "rejected":
            return False
        refused = self.pending.pop(header(letter, "dead-letter-id"), None)
        if refused is None or not (
            refused.payload == POISON or refused.target == self.refusing or self._is_forbidden(refused)
        ):
            raise Violation(f"a dead letter of {refused}, which nobody refused")
        return True

    def _check_rules(self, id: str, due: Pending) -> None:
        """Raise Violation if the rules of its tenant keep a schedule from firing, and kept it when it was prepared."""
        rules = self.rules.within(due.tenant, self.decided_at - self.stage_ahead_ms, self.decided_at)
        if all(rule is not None and (rule.is_stopped or rule.forbids(due.target)) for rule in rules):
            raise Violation(f"{id} was delivered against the rules {rules}")

    def _is_forbidden(self, pending: Pending) -> bool:
        rules = self.rules.within(pending.tenant, self.decided_at - self.stage_ahead_ms, self.decided_at)
        return any(rule is not None and rule.forbids(pending.target) for rule in rules)

    def _is_deleted(self, id: str, now: int) -> bool:
        rule = self.rules.at(self.pending[id].tenant, now) if id in self.pending else None
        return rule is not None and rule.state == "deleted"

    def _is_stopped(self, pending: Pending, now: int) -> bool:
        rule = self.rules.at(pending.tenant, now)
        return rule is not None and rule.is_stopped

    def _check_backlog(self, end: int) -> None:
        waiting = self.commands[self.taken].offset if self.taken < len(self.commands) else end
        if waiting < end:
            raise Violation(f"something was fired before command {waiting}, which waited since the lane took over")

    def finish(self, now: int) -> None:
        """At the end everything has been carried out, and nothing that was due is left."""
        if self.taken < len(self.commands):
            raise Violation(f"{len(self.commands) - self.taken} commands were never carried out")
        if self.waiting.queues:
            raise Violation(f"never carried out, since they were delayed: {self.waiting.queues}")
        self.unsent.finish()
        waiting = {id: p for id, p in self.pending.items() if p.due <= now and not p.paused and p.payload != POISON}
        missing = {id: pending for id, pending in waiting.items() if not self._is_stopped(pending, now)}
        if missing:
            raise Violation(f"never delivered: {missing}")
        if left := {id for id in self.pending if self._is_deleted(id, now)}:
            raise Violation(f"never removed with their tenant: {left}")
        if self.owed or not all(many.answered for many in self.many.values()):
            raise Violation(f"never done: {self.owed}, {self.many}")


def id_of(command: Record) -> str:
    return text(command.key)


def changes(pending: Pending, verb: str) -> bool:
    """Return whether a command changes a schedule."""
    return verb == "cancel" or pending.paused != (verb == "pause")
