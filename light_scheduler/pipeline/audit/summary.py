"""The report of an audit: as a document, as lines, and as a page."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from light_scheduler.pipeline.pages import BAD, FAINT, GOOD, Section, page, paragraph, plot, table, utc
from light_scheduler.wire import format_instant

if TYPE_CHECKING:
    from matplotlib.axes import Axes

MOST_SHOWN = 100
"""Faults that a summary lists one by one."""

_UNJUDGED = {
    "unjudged": "commands, lines of history or firings could not be judged: a topic has lost its beginning, or is gone",
    "ambiguous": "schedules could not be judged: their ids are used on several commands topics, or in several "
    "partitions of one whose messages do not name the partition",
    "moved": "schedules could not be judged: they moved, or their commands were passed on, since partitions were added",
    "unread": "schedules could not be judged: their commands need a schema registry, which the audit does not ask",
    "unclaimed": "messages name schedules that the history did not know yet: another scheduler may have delivered them",
    "untraced": "firings could only be looked up by content, because their messages do not name their schedules: "
    "copies, and messages without a command, are not found",
    "unreadable": "records look like the scheduler's, and are not",
    "waiting": "commands wait for a worker, or for a quota of their tenant",
}
_MEANINGS = {
    "missing": "promised, and not delivered",
    "duplicate": "delivered more often than promised",
    "early": "delivered before they were due",
    "late": "delivered later than the bound",
    "altered": "delivered with another payload, key, header or partition than promised",
    "after_cancel": "delivered after a cancel that was accepted",
    "superseded": "delivered at a time that an accepted update had replaced",
    "unexpected": "delivered or told by history, although nothing asked for it",
    "ignored": "commands without the effect that they should have had",
}


@dataclass(frozen=True)
class FoundFault:
    """A fault as reports show it. Instants are UTC epoch ms; topic, partition and offset say where to look."""

    kind: str
    tenant: str
    id: str
    due: int | None
    at: int
    topic: str
    partition: int
    offset: int
    detail: str

    def line(self) -> str:
        due = "" if self.due is None else f" due {format_instant(self.due)}"
        return f"{self.kind} {self.tenant}/{self.id}{due}: {self.detail} ({self.topic}/{self.partition}/{self.offset})"


@dataclass(frozen=True)
class AuditSummary:
    """The numbers of an audit, and its faults.

    `start` and `end` are UTC epoch ms. `unjudged` counts history events and firings without a counterpart to compare
    with, `ambiguous` schedules whose ids are used on several commands topics, `moved` those that moved between
    partitions, `unread` those with commands that need schemas of a registry, `unclaimed` messages in dialects of other
    schedulers that those may have delivered, `untraced` firings whose messages do not name their schedules,
    `unreadable` records that look like the scheduler's and are not, and `waiting` commands that no worker
    has carried out yet. `expanded_by_spark` is the number of series that Spark has expanded on its own. `faults` are
    the first ones.
    """

    start: int
    end: int
    schedules: int
    firings: int
    unjudged: int
    ambiguous: int
    moved: int
    unread: int
    unclaimed: int
    untraced: int
    unreadable: int
    waiting: int
    expanded_by_spark: int
    lateness_ms: Mapping[str, int]
    fault_counts: Mapping[str, int]
    faults: Sequence[FoundFault]

    @property
    def failed(self) -> bool:
        return bool(self.fault_counts)

    def lines(self) -> list[str]:
        start = format_instant(self.start) if self.start else "the beginning"
        recorded = f"{self.schedules:,} schedules, {self.firings:,} firings delivered"
        lines = [f"From {start} to {format_instant(self.end)}: {recorded}."]
        if self.lateness_ms:
            levels = ", ".join(f"{name} {value:,}" for name, value in self.lateness_ms.items())
            lines.append(f"Lateness in ms: {levels}.")
        lines += [f"{number:,} {text}." for name, text in _UNJUDGED.items() if (number := getattr(self, name))]
        lines += [fault.line() for fault in self.faults]
        if not self.fault_counts:
            return [*lines, "No faults."]
        recorded = ", ".join(f"{number:,} {kind}" for kind, number in self.fault_counts.items())
        return [*lines, f"Faults: {recorded}."]


@dataclass(frozen=True)
class Figures:
    """Data of the plots: (lateness in ms, firings), (instant, firings) and (instant, faults), by `width` ms."""

    lateness: Sequence[tuple[int, int]]
    firings: Sequence[tuple[int, int]]
    faults: Sequence[tuple[int, int]]
    width: int


def audit_page(summary: AuditSummary, figures: Figures, listed: Sequence[FoundFault]) -> str:
    """Return the report; `listed` are the faults that it lists."""
    return page("Audit of deliveries", summary.lines()[0], _sections(summary, figures, listed))


def _sections(summary: AuditSummary, figures: Figures, listed: Sequence[FoundFault]) -> list[Section]:
    counts = summary.fault_counts
    total = sum(counts.values())
    verdict = paragraph(f"{total:,} faults" if total else "No faults", "bad" if total else "good")
    if total:
        verdict += table(("Fault", "Number", "Meaning"), [(kind, counts[kind], _MEANINGS[kind]) for kind in counts])
    sections = [Section("Verdict", verdict)]
    if figures.firings:
        sections.append(Section("Firings over time", _over_time(figures)))
    if figures.lateness:
        levels = table(("Share of firings", "At most, in ms"), list(summary.lateness_ms.items()))
        sections.append(Section("Lateness", _lateness(figures) + levels))
    for kind in counts:
        rows = [
            (f"{fault.tenant}/{fault.id}", _shown(fault.due), _shown(fault.at), _place(fault), fault.detail)
            for fault in listed
            if fault.kind == kind
        ]
        more = "" if len(rows) == counts[kind] else paragraph(f"The first {len(rows):,} of {counts[kind]:,}.")
        head = ("Schedule", "Due", "At", "Topic/partition/offset", "What")
        sections.append(Section(f"Faults: {kind}", more + table(head, rows)))
    judged = [
        ("schedules", summary.schedules),
        ("firings delivered", summary.firings),
        ("series that Spark expanded as well", summary.expanded_by_spark),
        *((text, getattr(summary, name)) for name, text in _UNJUDGED.items()),
    ]
    sections.append(Section("What was judged", table(("What", "Number"), judged)))
    return sections


def _over_time(figures: Figures) -> str:
    def draw(axes: Axes) -> None:
        width = figures.width / 86_400_000  # days, which axes of time count in
        times: Any = [utc(at) for at, _ in figures.firings]
        axes.bar(times, [number for _, number in figures.firings], width=width, align="edge", color=GOOD)
        axes.set_ylabel("firings", fontsize=9)
        if figures.faults:
            marks: Any = [utc(at) for at, _ in figures.faults]
            axes.plot(marks, [0] * len(marks), "^", color=BAD, markersize=8, clip_on=False, label="faults")
            axes.legend(frameon=False, fontsize=9)

    return plot(draw, "Firings delivered over time, with the instants of faults")


def _lateness(figures: Figures) -> str:
    def draw(axes: Axes) -> None:
        total = sum(number for _, number in figures.lateness)
        values, shares, seen = [], [], 0
        for late, number in sorted(figures.lateness):
            seen += number
            values.append(max(1, late))
            shares.append(100 * seen / total)
        axes.step(values, shares, where="post", color=GOOD, linewidth=1.8)
        axes.set_xscale("log")
        axes.set_ylim(0, 101)
        axes.set_xlabel("ms late, at most", fontsize=9)
        axes.set_ylabel("% of firings", fontsize=9)
        axes.axhline(99, color=FAINT, linewidth=0.8, linestyle="--")

    return plot(draw, "Share of firings by lateness")


def _shown(instant: int | None) -> str:
    return "" if instant is None else format_instant(instant)


def _place(fault: FoundFault) -> str:
    return f"{fault.topic}/{fault.partition}/{fault.offset}"
