"""The delay rules of a cluster, in memory."""

from __future__ import annotations

from light_scheduler.delays import DelayLaneStatus, DelayView, RuleFromConfigurationError
from light_scheduler.model import DelayRule, Requester
from light_scheduler.model.delay import check_rule
from light_scheduler.settings import Settings


class MemoryDelays:
    """The delay rules of a cluster, as one worker sees them; `fixed` is in the configuration."""

    def __init__(self) -> None:
        self.rules = {"fixed": DelayRule("fixed", "a", 5_000, "b")}
        self.changers: list[Requester] = []
        self.figures: list[DelayLaneStatus] = []

    def views(self) -> list[DelayView]:
        return [
            DelayView(
                name=rule.name, source=rule.source, delay=rule.delay, target=rule.target,
                origin="configuration" if rule.name == "fixed" else "topic",
            )
            for _, rule in sorted(self.rules.items())
        ]  # fmt: skip

    def lanes(self) -> list[DelayLaneStatus]:
        return self.figures

    async def put(self, rule: DelayRule, *, by: Requester) -> bool:
        self._check(rule.name)
        check_rule(rule, self.rules.values(), Settings().reserved_topics)
        is_new = rule.name not in self.rules
        self.rules[rule.name] = rule
        self.changers.append(by)
        return is_new

    async def remove(self, name: str, *, by: Requester) -> bool:
        self._check(name)
        self.changers.append(by)
        return self.rules.pop(name, None) is not None

    def _check(self, name: str) -> None:
        if name == "fixed":
            raise RuleFromConfigurationError(name)
