"""The project's own targets, and whether they are reached."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

from benchmarks.report.markdown import NOT_MEASURED, number, table
from benchmarks.report.results import Figure, Results

from . import peers, pipeline, state, throughput

GIB = 2**30


class Bar(NamedTuple):
    """A target: at most, or at least (`is_least`), `limit`.

    `value` reads it from a result. `explained` is a section of EXPERIMENTS.md, which contains `last_known` if there is
    no result.
    """

    title: str
    limit: float
    result: str
    value: Callable[[Results, str], float | None]
    explained: str
    unit: str = ""
    digits: int = 2
    is_least: bool = False
    last_known: float | None = None

    def row(self, results: Results) -> list[str]:
        """Return the cells of a target."""
        bound = f"at {'least' if self.is_least else 'most'} {number(self.limit, self.digits)}{self.unit}"
        value = self.value(results, self.result)
        if value is not None:
            said = "reached" if self._is_reached(value) else f"not reached: [why]({self._page})"
            return [self.title, bound, ", ".join([self._text(value), *results.remarks(self.result)]), said]
        if self.last_known is None:
            return [self.title, bound, NOT_MEASURED, ""]
        last = f"{NOT_MEASURED}; last known: [{self._text(self.last_known)}]({self._page})"
        return [self.title, bound, last, "then reached" if self._is_reached(self.last_known) else "then not reached"]

    def _text(self, value: float) -> str:
        """Return a value with enough digits to distinguish it from the limit."""
        digits = self.digits
        while value != self.limit and number(value, digits) == number(self.limit, digits):
            digits += 1
        return f"{number(value, digits)}{self.unit}"

    def _is_reached(self, value: float) -> bool:
        return value >= self.limit if self.is_least else value <= self.limit

    @property
    def _page(self) -> str:
        return f"EXPERIMENTS.md#{self.explained}"


def bars(results: Results) -> str:
    """A row for each target."""
    return table(["bar", "", "measured", ""], (bar.row(results) for bar in BARS))


def _median(key: str, divisor: float = 1.0) -> Callable[[Results, str], float | None]:
    return lambda results, name: _of(results.figure(name, key), divisor)


def _of(figure: Figure | None, divisor: float = 1.0) -> float | None:
    return None if figure is None else figure.median / divisor


def _cold_start(results: Results, name: str) -> float | None:
    return _of(state.cold_start(results, name))


def _warm_start(results: Results, name: str) -> float | None:
    keys = ("restart_after_kill_to_first_firing_s", "restart_to_first_firing_s")
    found = [figure.max for key in keys if (figure := results.figure(name, key))]
    return max(found, default=None)


def _relative(key: str, ours: str, theirs: str) -> Callable[[Results, str], float | None]:
    return lambda results, name: _of(peers.relative(results, name, key, ours, theirs))


def _sharing(key: str) -> Callable[[Results, str], float | None]:
    return lambda results, name: _of(throughput.sharing_ratio(results, name, key))


def _job(job: str) -> Callable[[Results, str], float | None]:
    return lambda results, name: pipeline.seconds(results, name, job)


EVENT, STARTS, MANY = "processor-time-of-an-event", "cold-start", "tens-of-millions-pending"
SHARING, OTHERS = "several-processes", "other-schedulers"
AGAINST, FIFTY, SHARED = "against-f1ba380", "update-cost-50m", "scaling-processes"

BARS = (
    Bar(
        "command: processor time relative to `f1ba380`",
        0.75,
        AGAINST,
        _median("ingest_cpu_ratio"),
        EVENT,
        last_known=0.90,
    ),
    Bar(
        "firing: processor time relative to `f1ba380`",
        0.85,
        AGAINST,
        _median("burst_cpu_ratio"),
        EVENT,
        last_known=0.88,
    ),
    Bar("`burst`, share of the client's ceiling", 0.40, "burst", _median("ratio_to_ceiling"), EVENT, is_least=True),
    Bar(
        "lateness of the last firing of 100,000 schedules of one minute",
        3,
        "recurring",
        _median("lateness_max_ms", 1_000),
        "recurring-firings",
        " s",
        1,
    ),
    Bar(
        "50 million pending: processor time of a new schedule relative to 1 million",
        1.15,
        FIFTY,
        _median("accepted_cpu_ratio_to_few"),
        MANY,
    ),
    Bar(
        "50 million pending: processor time of a replacement relative to 1 million",
        1.15,
        FIFTY,
        _median("replaced_cpu_ratio_to_few"),
        MANY,
    ),
    Bar("50 million pending: memory", 1.2, FIFTY, _median("rss_bytes", GIB), MANY, " GiB"),
    Bar("cold start, 10 million", 40, "recovery-10m", _cold_start, STARTS, " s", 1),
    Bar("cold start, 1 million", 5, "recovery", _cold_start, STARTS, " s", 1, last_known=4.2),
    Bar("warm start, 10 million, the slower of the two", 3, "recovery-10m", _warm_start, STARTS, " s", 1),
    Bar(
        "burst of two processes relative to the Kafka Streams punctuator",
        1,
        "peers-node",
        _relative("burst_per_s", "light_node", "streams"),
        OTHERS,
        is_least=True,
    ),
    Bar(
        "accepted relative to db-scheduler",
        1,
        "peers",
        _relative("accepted_per_s", "light", "db_scheduler"),
        OTHERS,
        is_least=True,
    ),
    Bar(
        "audit of 1 million, after `archive` in the same session", 60, "audit-million", _job("audit"), "audit", " s", 1
    ),
    Bar("audit of 10 million, after `archive` in the same session", 600, "audit-10m", _job("audit"), "audit", " s", 0),
    Bar(
        "forecast of 1 million series, a month ahead",
        60,
        "forecast-series",
        _job("forecast of series"),
        "forecast",
        " s",
        1,
    ),
    Bar("command: processor time with two processes relative to one", 1.05, SHARED, _sharing("accepting_us"), SHARING),
    Bar("firing: processor time with two processes relative to one", 1.05, SHARED, _sharing("firing_us"), SHARING),
)
