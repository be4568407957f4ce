"""Rates of tenants, and tokens that partitions lend to each other."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from light_scheduler.engine.command_rates import CommandRates
from light_scheduler.engine.firing_rates import FiringRates
from light_scheduler.engine.rate_lending import Demand
from light_scheduler.engine.token_bucket import TokenBucket
from light_scheduler.lanes.context.lane_context import LaneContext
from light_scheduler.lanes.failures.transactions import Failures
from light_scheduler.lanes.quotas.commands import CommandQuotas
from light_scheduler.model.partitioning import Partitioning
from light_scheduler.model.rate_lending import RatePart
from light_scheduler.model.tenant_rules import Tenant
from simulation.drawing_rates import draw_loaded_growth, draw_rates, draw_rates_in_doubt, draw_rates_of_topics

from .planting import mutant, replaced


@mutant(2, "An answer brings twice the tokens that were lent.", 100, draw_rates)
def _tokens_are_taken_twice() -> Iterator[Any]:
    answered = Demand.answered
    with replaced(Demand, "answered", lambda self, *answer: 2 * answered(self, *answer)):
        yield None


@mutant(2, "A partition keeps the tokens that it lends.", 100, draw_rates)
def _tokens_are_lent_and_kept() -> Iterator[Any]:
    lend = TokenBucket.lend

    def kept(self: TokenBucket, *ask: Any) -> float:
        spare, tokens = self._spare, self._tokens
        lent = lend(self, *ask)
        self._spare, self._tokens = spare, tokens
        return lent

    with replaced(TokenBucket, "lend", kept):
        yield None


@mutant(2, "Borrowed tokens are not used up by what is carried out with them.", 100, draw_rates)
def _borrowed_tokens_last() -> Iterator[Any]:
    spend = TokenBucket.spend

    def own_ones_first(self: TokenBucket, tokens: float) -> None:
        borrowed = self._borrowed
        spend(self, tokens)
        self._borrowed = borrowed

    with replaced(TokenBucket, "spend", own_ones_first):
        yield None


@mutant(2, "Commands that were carried out do not count for the rate.", 100, draw_rates)
def _commands_do_not_count() -> Iterator[Any]:
    with replaced(CommandRates, "commit", CommandRates.begin):
        yield None


@mutant(2, "Commands that catch up use up no tokens.", 400, draw_rates)
def _catching_up_costs_nothing() -> Iterator[Any]:
    catch_up = CommandRates.catch_up

    def for_nothing(self: CommandRates, tenant: str, rate: float, now: int) -> bool:
        may_go_on = catch_up(self, tenant, rate, now)
        if may_go_on:
            self._begun[tenant][0]._tokens += 1
        return may_go_on

    with replaced(CommandRates, "catch_up", for_nothing):
        yield None


@mutant(2, "Delayed commands catch up with whatever kept the lane from looking at them.", 400, draw_rates)
def _delayed_commands_always_catch_up() -> Iterator[Any]:
    goes_on_at = CommandQuotas.goes_on_at

    def at_any_time(self: CommandQuotas, tenant: Tenant | None, **_: bool) -> int | None:
        return goes_on_at(self, tenant, catches_up=True)

    with replaced(CommandQuotas, "goes_on_at", at_any_time):
        yield None


@mutant(1, "Each partition has a cap to itself.", 100, draw_rates)
def _caps_are_not_shared() -> Iterator[Any]:
    with replaced(FiringRates, "earn", lambda *_: None):
        yield None


@mutant(5, "A lane whose transaction was aborted has saved up as much as a new one.", 400, draw_rates_in_doubt)
def _aborted_transactions_fill_buckets() -> Iterator[Any]:
    failed = Failures.failed

    def anew(self: Failures, *error: Any, **known: Any) -> bool:
        self._context.firing_rates._total, self._context.firing_rates._buckets = None, {}
        self._context.memory.command_rates._committed.clear()
        return failed(self, *error, **known)

    with replaced(Failures, "failed", anew):
        yield None


@mutant(1, "Partitions that were added have saved their part of a rate up.", 100, draw_loaded_growth)
def _added_partitions_begin_full() -> Iterator[Any]:
    with replaced(Partitioning, "rate_part", lambda self, _: RatePart(1 / self.partitions)):
        yield None


@mutant(1, "Partitions that were added earn as much as former ones did before.", 20, draw_loaded_growth)
def _added_partitions_earn_too_much() -> Iterator[Any]:
    rate_part = Partitioning.rate_part

    def as_former_ones(self: Partitioning, partition: int) -> RatePart:
        part = rate_part(self, partition)
        return part._replace(share=1 / (self.former or 1)) if part.is_new else part

    with replaced(Partitioning, "rate_part", as_former_ones):
        yield None


@mutant(1, "Former partitions earn the whole rate until all schedules have moved.", 20, draw_loaded_growth)
def _former_partitions_go_on_earning() -> Iterator[Any]:
    rate_part = Partitioning.rate_part

    def as_before(self: Partitioning, partition: int) -> RatePart:
        if self.former is not None and partition < self.former and not self.is_settled:
            return RatePart(1 / self.former)
        return rate_part(self, partition)

    with replaced(Partitioning, "rate_part", as_before):
        yield None


@mutant(1, "Each commands topic has a rate to itself.", 100, draw_rates_of_topics)
def _topics_do_not_share() -> Iterator[Any]:
    with replaced(LaneContext, "rate_part", property(lambda self: self.partitioning.rate_part(self.partition))):
        yield None
