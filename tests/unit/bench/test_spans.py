"""What is made of looks at a worker: rates, cost, and what went wrong; and the ceiling beside them."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from light_scheduler.bench.ceiling import LaneShare, added_up, events_per_transaction
from light_scheduler.bench.looks import Look, Span, span_of
from light_scheduler.bench.options import chosen
from light_scheduler.bench.records import Shape
from light_scheduler.bench.registry import scenario_named
from light_scheduler.bench.run import compared
from light_scheduler.bench.scenario import Ceiling
from light_scheduler.bench.scenarios import burst, ingest, recovery
from light_scheduler.errors import SchedulerError


def seen(at: float, events: int, cpu_s: float | None = None, firings: int = 0) -> Look:
    return Look(at=at, cpu_s=cpu_s, accepted=events, carried_out=events, pending=events - firings, firings=firings)


def accepted(one: Look) -> int:
    return one.accepted


class TestSpan:
    def test_it_lies_between_the_first_event_seen_and_the_last(self) -> None:
        looks = [
            seen(1.0, 0, 0.50),
            seen(2.0, 0, 0.60),
            seen(3.0, 1_000, 0.75),
            seen(4.0, 4_000, 1.50),
            seen(5.0, 9_000, 2.25),
            seen(6.0, 9_000, 3.00),
        ]
        span = span_of(looks, accepted)
        assert span == Span(events=8_000, seconds=2.0, cpu_s=1.5)
        assert span.per_s == 4_000
        assert span.cpu_us_per_event == 187.5

    def test_what_one_look_showed_at_once_began_with_the_look_before(self) -> None:
        assert span_of([seen(1.0, 0), seen(1.5, 0), seen(2.0, 100)], accepted) == Span(100, 0.5, None)

    def test_where_processor_time_is_not_known_its_cost_is_not_known_either(self) -> None:
        assert span_of([seen(1.0, 0), seen(2.0, 100)], accepted).cpu_us_per_event is None

    @pytest.mark.parametrize("looks", [[seen(1.0, 0), seen(2.0, 0)], [seen(1.0, 100), seen(2.0, 100)]])
    def test_a_worker_that_was_not_seen_at_work_has_no_rate(self, looks: list[Look]) -> None:
        with pytest.raises(SchedulerError, match="not seen at work"):
            span_of(looks, accepted)

    @pytest.mark.parametrize(
        ("scenario", "measure"),
        [
            ("recovery", recovery.recovered_per_s),
            ("burst", burst.speed),
            ("ingest", lambda looks: ingest.figures(looks, 100)),
        ],
    )
    def test_more_is_asked_for_with_an_option_that_applies(
        self, scenario: str, measure: Callable[[list[Look]], object]
    ) -> None:
        with pytest.raises(SchedulerError) as told:
            measure([seen(1.0, 0), seen(2.0, 0)])
        option = str(told.value).rpartition("use more --")[2]
        assert chosen(scenario, scenario_named(scenario).defaults, {option: 1_000})


class TestIngestFigures:
    def test_rate_and_cost_come_from_the_span(self) -> None:
        figures = ingest.figures([seen(1.0, 0, 1.0), seen(2.0, 500, 1.5), seen(3.0, 1_500, 1.75)], 1_500)
        assert figures == {
            "accepted_per_s": 1_000,
            "worker_cpu_us_per_event": 250,
            "missing": 0,
            "duplicate": 0,
            "early": 0,
        }

    def test_without_processor_time_the_figure_is_left_out(self) -> None:
        assert "worker_cpu_us_per_event" not in ingest.figures([seen(1.0, 0), seen(2.0, 500)], 500)

    def test_faults_are_counted(self) -> None:
        end = Look(at=2.0, cpu_s=None, accepted=98, carried_out=103, pending=95, firings=2)
        figures = ingest.figures([seen(1.0, 0), end], 100)
        assert (figures["missing"], figures["duplicate"], figures["early"]) == (5, 3, 2)


class TestBurst:
    def test_its_speed_counts_firings(self) -> None:
        looks = [seen(1.0, 300, 1.0, 0), seen(1.5, 300, 1.1, 100), seen(2.0, 300, 1.3, 300)]
        assert burst.speed(looks) == pytest.approx({"firings_per_s": 400, "worker_cpu_us_per_event": 1_000})

    def test_the_instant_moves_away_with_the_number_of_messages_and_with_each_attempt(self) -> None:
        assert burst.lead_ms(0, 0) >= 1_000
        assert burst.lead_ms(1_000_000, 0) > burst.lead_ms(1_000, 0)
        assert [burst.lead_ms(1_000, attempt) // burst.lead_ms(1_000, 0) for attempt in range(4)] == [1, 2, 4, 8]


class TestCeiling:
    def test_each_lane_counts_over_its_own_time(self) -> None:
        assert added_up([LaneShare(10_000, begun=1.0, ended=3.0), LaneShare(10_000, begun=1.0, ended=5.0)]) == 7_500

    def test_a_transaction_holds_what_a_lane_takes_at_once(self) -> None:
        assert [events_per_transaction(size) for size in (0, 200, 1 << 20)] == [5_000, 5_000, 8]

    def test_the_ratio_is_that_of_the_same_round(self) -> None:
        figures = compared(
            {"accepted_per_s": 50_000, "missing": 0}, Ceiling("accepted_per_s", Shape.ACCEPTANCE), 200_000
        )
        assert figures == {"accepted_per_s": 50_000, "missing": 0, "ceiling_per_s": 200_000, "ratio_to_ceiling": 0.25}
