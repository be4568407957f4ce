"""`bench peers`: where it can run, and what its document calls the figures of others."""

from __future__ import annotations

from importlib import import_module
from pathlib import Path
from typing import Any

import pytest

from light_scheduler.bench.figures import summarised
from light_scheduler.bench.options import chosen
from light_scheduler.bench.scenarios import peers
from light_scheduler.errors import ConfigurationError, SchedulerError

MEETING = import_module("benchmarks.peers")


def played(**given: int) -> dict[str, float]:
    nothing: Any = None
    return peers.play(nothing, chosen("peers", peers.SCENARIO.defaults, given), nothing)


def result(failures: tuple[str, ...] = ()) -> dict[str, Any]:
    figures = {name: {"median": float(number)} for number, name in enumerate(peers.FIGURES)}
    faults = {"missing": {"median": 1.0}, "killed_missing": {"median": 3.0}, "killed_left": {"median": 5.0}}
    return {"title": "A peer", "failures": list(failures), "figures": figures | faults}


def test_it_knows_all_contestants() -> None:
    assert {peers.OURS, *peers.PEERS} == MEETING.CONTESTANTS.keys()


def test_our_figures_have_their_usual_names_and_those_of_others_begin_with_theirs(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    scales = []

    def measured(_stage: object, _progress: object, scale: float) -> dict[str, Any]:
        scales.append(scale)
        return {name: result() for name in MEETING.CONTESTANTS}

    monkeypatch.setattr(MEETING, "measured", measured)
    figures = summarised([played(messages=5_000)], peers.SCENARIO.units)
    assert scales == [0.1]
    assert (figures["firings_per_s"].median, figures["streams_firings_per_s"].unit) == (1.0, "1/s")
    assert (figures["missing"].median, figures["celery_missing"].median, figures["duplicate"].median) == (4, 4, 0)
    assert len(figures) == 6 * (len(peers.FIGURES) + len(peers.FAULTS))


def test_what_a_contestant_has_no_figure_of_is_left_out(monkeypatch: pytest.MonkeyPatch) -> None:
    late = result()
    del late["figures"]["lateness_p50_ms"]
    monkeypatch.setattr(MEETING, "measured", lambda *_: {"celery": late})
    assert "celery_lateness_p50_ms" not in played()


def test_a_contestant_that_fails_is_an_error_that_names_it(monkeypatch: pytest.MonkeyPatch) -> None:
    found = {"light": result(), "celery": result(("round 1: no Redis",))}
    monkeypatch.setattr(MEETING, "measured", lambda *_: found)
    with pytest.raises(SchedulerError, match=r"^A peer: round 1: no Redis$"):
        played()


def test_what_does_not_apply_is_refused() -> None:
    with pytest.raises(ConfigurationError, match="--payload-bytes"):
        played(payload_bytes=100)


def test_without_a_clone_it_says_so(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(peers, "CLONE", tmp_path)
    with pytest.raises(SchedulerError, match="in a clone only"):
        played()
