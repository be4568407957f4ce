"""Fair sharing: by weight, without starving anybody, and without credit for having asked for nothing."""

from __future__ import annotations

from collections import Counter

import pytest
from hypothesis import given
from hypothesis import strategies as st

from light_scheduler.engine.fairness import QUANTUM, FairQueue


class Work:
    """Work of tenants: each piece with its cost, done in order."""

    def __init__(self, **pieces: list[float]) -> None:
        self.left = {tenant: list(costs) for tenant, costs in pieces.items()}
        self.done: Counter[str] = Counter()
        self.spent: dict[str, float] = dict.fromkeys(pieces, 0.0)

    def serve(self, tenant: str, allowance: float) -> float:
        cost = 0.0
        while self.left[tenant] and cost < allowance:
            cost += self.left[tenant].pop(0)
            self.done[tenant] += 1
        self.spent[tenant] = self.spent.get(tenant, 0.0) + cost
        return cost

    def share(self, queue: FairQueue, budget: float) -> Counter[str]:
        before = self.done.copy()
        waiting = {tenant: self._of(tenant) for tenant, pieces in self.left.items() if pieces}
        queue.share(waiting, budget)
        return self.done - before

    def _of(self, tenant: str):  # type: ignore[no-untyped-def]
        return lambda allowance: self.serve(tenant, allowance)


def ones(count: int) -> list[float]:
    return [1.0] * count


@pytest.mark.parametrize(
    ("pieces", "weights", "budget", "done"),
    [
        pytest.param({}, {}, 100, {}, id="nobody waits"),
        pytest.param({"a": 50}, {}, 100, {"a": 50}, id="one, who gets all there is"),
        pytest.param({"a": 500}, {}, 100, {"a": 100}, id="one, up to the budget"),
        pytest.param({"a": 500, "b": 10}, {}, 100, {"a": 90, "b": 10}, id="what one leaves is the other's"),
        pytest.param({"a": 500, "b": 500}, {}, 128, {"a": 64, "b": 64}, id="two alike"),
        pytest.param({"a": 500, "b": 500}, {"a": 3}, 128, {"a": 96, "b": 32}, id="three to one"),
        pytest.param({"a": 500, "b": 10}, {"a": 1_000}, 33 * 32, {"a": 500, "b": 10}, id="a heavy one cannot keep it"),
        pytest.param({"a": 500, "b": 500}, {}, 0, {}, id="no budget"),
        pytest.param({"a": 500, "b": 500}, {}, 1, {"a": 1}, id="less than there are tenants"),
    ],
)
def test_one_call(pieces: dict[str, int], weights: dict[str, int], budget: int, done: dict[str, int]) -> None:
    work = Work(**{tenant: ones(count) for tenant, count in pieces.items()})
    assert work.share(FairQueue(weights), budget) == done


def test_who_was_served_less_comes_first_in_the_next_call() -> None:
    work, queue = Work(a=ones(100), b=ones(100), c=ones(100)), FairQueue()
    assert [dict(work.share(queue, QUANTUM)) for _ in range(6)] == [{each: 32} for each in "abcabc"]


def test_what_was_done_in_a_transaction_that_came_to_nothing_is_charged_to_nobody() -> None:
    queue = FairQueue()

    def first(*, commits: bool) -> str:
        queue.begin()
        (tenant,) = Work(a=ones(9), b=ones(9)).share(queue, 1)
        if commits:
            queue.commit()
        return tenant

    assert [first(commits=each) for each in (False, False, True, False, False, True, False)] == [*"aaabbba"]


def test_large_work_is_paid_for_in_later_calls() -> None:
    work, queue = Work(large=[640.0] * 10, small=ones(2_000)), FairQueue()
    shares = [work.share(queue, 64) for _ in range(22)]
    assert sum((share["large"] for share in shares), 0) == 2
    assert sum((share["small"] for share in shares), 0) > 600


def test_a_tenant_that_comes_back_has_no_credit_for_its_pause() -> None:
    work, queue = Work(a=ones(10_000), b=ones(1)), FairQueue()
    for _ in range(50):
        work.share(queue, 100)
    work.left["b"] = ones(10_000)
    share = Counter[str]()
    for _ in range(10):
        share += work.share(queue, 100)
    assert abs(share["a"] - share["b"]) <= 200  # the call before its return is not made up for either


def test_a_tenant_does_not_shed_what_it_was_served_by_a_pause() -> None:
    work, queue = Work(a=[3_200.0, 1.0], b=ones(10_000)), FairQueue()
    work.share(queue, 32)
    late = work.left.pop("a")
    for _ in range(10):
        work.share(queue, 32)
    work.left["a"] = late
    assert work.share(queue, 320)["a"] == 0


def test_newcomers_do_not_overtake_who_waits() -> None:
    work, queue = Work(zoe=ones(1)), FairQueue()
    for number in range(20):
        work.left |= {f"new-{number}-{each}": ones(QUANTUM.__trunc__()) for each in range(3)}
        work.share(queue, QUANTUM)
        if work.done["zoe"]:
            break
    assert work.done["zoe"]
    assert number <= 3


tenants = st.sampled_from("abcdef")


@given(
    weights=st.dictionaries(tenants, st.integers(1, 20)),
    costs=st.lists(st.floats(1, 50), min_size=1, max_size=5),
    budgets=st.lists(st.floats(1, 500), min_size=1, max_size=30),
)
def test_while_all_wait_what_each_is_served_is_as_its_weight(
    weights: dict[str, int], costs: list[float], budgets: list[float]
) -> None:
    queue = FairQueue(weights)
    work = Work(**dict.fromkeys("abc", costs * 4000))
    for budget in budgets:
        work.share(queue, budget)
    served = {tenant: work.spent[tenant] / weights.get(tenant, 1) for tenant in "abc"}
    largest = QUANTUM + max(costs)
    for one in "abc":
        for other in "abc":
            bound = largest / weights.get(one, 1) + largest / weights.get(other, 1)
            assert served[one] - served[other] <= bound + 1e-6


@given(
    weights=st.dictionaries(tenants, st.integers(1, 1_000)),
    arrivals=st.lists(st.dictionaries(tenants, st.integers(1, 80), max_size=6), min_size=1, max_size=20),
    budget=st.integers(1, 200),
)
def test_nothing_is_left_undone_while_there_is_budget_and_nobody_starves(
    weights: dict[str, int], arrivals: list[dict[str, int]], budget: int
) -> None:
    queue, work = FairQueue(weights), Work(**{tenant: [] for tenant in "abcdef"})
    for arrived in arrivals:
        for tenant, count in arrived.items():
            work.left[tenant] += ones(count)
        waiting = sum(map(len, work.left.values()))
        assert work.share(queue, budget).total() == min(budget, waiting)
    rounds = 0
    while any(work.left.values()):
        rounds += 1
        work.share(queue, budget)
    assert rounds <= 6 * 80 * 20 / budget + 1
