"""Schedules with more records than fit into memory are judged as all others are, in no more of it."""

from __future__ import annotations

import gc
import sys
import tracemalloc
from contextlib import suppress
from pathlib import Path
from typing import Any

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from support.ledger import Ledger
from support.tries import tries

from light_scheduler.pipeline.audit import overflow
from light_scheduler.pipeline.audit.evidence import SEEN
from light_scheduler.pipeline.audit.orders import Orders
from light_scheduler.pipeline.audit.overflow import LongList, LongMap
from light_scheduler.pipeline.audit.replay import MOST_STATES
from light_scheduler.pipeline.audit.verdict_table import COUNT, judge_rows

from .conftest import Verdicts, evidence, order_of
from .test_audit import HOUR, PLANTED, STEPS, M, busy, faults, firing_of
from .test_audit_clearing import batch_of, found, terms_of

__all__ = ["busy"]

SECOND = 1_000


@pytest.fixture
def little(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let next to nothing fit into memory."""
    monkeypatch.setattr(overflow, "MOST", 1)


@pytest.mark.usefixtures("little")
@pytest.mark.parametrize("name", PLANTED)
def test_what_is_wrong_is_found_whatever_fits_into_memory(name: str, busy: Ledger, verdicts: Verdicts) -> None:
    plant, expected = PLANTED[name]
    plant(busy)
    assert faults(verdicts(busy, end=M + 2 * HOUR)) == expected


def test_each_line_of_a_series_is_tried_with_so_many_states_however_many_reports_are_still_to_come(
    ledger: Ledger, verdicts: Verdicts, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A report on a firing that is not there yet changes nothing, so it may have been read at any time before."""
    tried, by_turn, reports, now = [0], Orders.by_turn, 150, M
    ledger.send("a", now, ("every", "1h"), ("mode", "fixed-delay"), ("ack-timeout", "30m"))
    for _ in range(reports):
        now += HOUR
        ledger.run_until(now)
        ledger.send("a", now, ("command", "complete"), ("firing-id", f"a@{now}"), ("attempt", 1))
        ledger.run(now)

    def counted(self: Orders, *of: Any) -> Any:
        tried[0] += 1
        return by_turn(self, *of)

    monkeypatch.setattr(Orders, "by_turn", counted)
    assert faults(verdicts(ledger, end=now)) == []
    assert reports < tried[0] <= 2 * reports * 2 * MOST_STATES


@settings(max_examples=tries(50))
@given(STEPS, st.sampled_from([0, 1, 3]), st.booleans())
def test_whatever_lanes_did_is_judged_alike(steps: list[Any], most: int, is_torn: bool) -> None:
    ledger, now = Ledger(), M
    for pause, is_down, partition, headers in steps:
        if not is_down:
            ledger.run_until(now + pause)
        now += pause
        ledger.send("a", now, *headers, partition=partition)
    ledger.run(now)
    ledger.run_until(now + HOUR)
    rows, terms = evidence(ledger), terms_of(ledger, end=now + HOUR, replays_all=True)
    if is_torn:  # every second message is gone, and every third that is left is there twice
        seen = [row for row in rows if row.kind == SEEN]
        rows = [row for row in rows if row.kind != SEEN] + seen[::2]
        rows += [row._replace(offset=row.offset + 1_000) for row in seen[::6]]
    whole = found(rows, terms)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(overflow, "MOST", most)
        assert found(rows, terms, 7) == whole


def series_of(firings: int) -> Ledger:
    """Return an application with a series of so many firings, the last message of which is there twice."""
    ledger = Ledger()
    ledger.send("series", M, ("every", "1s"), ("max-firings", firings))
    ledger.run_until(M + (firings + 1) * SECOND)
    last = firing_of(ledger, "series", firings - 1)
    ledger.append(last.topic, 0, last.timestamp, last.key, last.value, last.headers)
    return ledger


def peak_of(firings: int) -> int:
    """Return the memory that judging takes at most (bytes)."""
    ledger = series_of(firings)
    terms = terms_of(ledger, end=M + (firings + 1) * SECOND)
    rows = sorted(evidence(ledger), key=order_of)
    batches = [batch_of(rows[first : first + 100]) for first in range(0, len(rows), 100)]
    rows.clear()
    gc.collect()
    tracemalloc.start()
    try:
        told = [row for batch in judge_rows(terms)(iter(batches)) for row in batch.to_pylist()]
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    delivered = [row["number"] for row in told if (row["what"], row["name"]) == (COUNT, "delivered")]
    assert delivered == [firings]
    assert [row["name"] for row in told if row["what"] == "fault"] == ["duplicate"]
    return peak


@pytest.mark.soak
def test_ten_times_as_many_firings_take_no_more_memory(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(overflow, "MOST", 100)
    peak_of(100)  # what is made once
    assert peak_of(5_000) < 1.2 * peak_of(500)


# -- the containers ----------------------------------------------------------------------------------------------------

_encode = msgspec.msgpack.Encoder().encode
_decode = msgspec.msgpack.Decoder(int).decode
KEYS = st.tuples(st.integers(0, 5), st.sampled_from([None, 1]))


@settings(max_examples=tries(100))
@given(st.integers(0, 4), st.lists(st.tuples(KEYS, st.one_of(st.none(), st.integers()))))
def test_a_map_is_a_map_wherever_its_values_are(most: int, steps: list[tuple[Any, int | None]]) -> None:
    steps = [(key, value and value % 1_000) for key, value in steps]
    long: LongMap[Any, int] = LongMap(_encode, _decode)
    plain: dict[Any, int] = {}
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(overflow, "MOST", most)
        for key, value in steps:
            assert long.get(key) == plain.get(key)
            if value is None:
                long.drop(key)
                plain.pop(key, None)
            else:
                long.put(key, value)
                plain[key] = value
        assert sorted(long.values()) == sorted(plain.values())
        assert [long.get(key) for key in plain] == list(plain.values())


def open_in(folder: Path) -> list[str]:
    """Return the files in a folder that this process has open, deleted ones too."""
    found = []
    for each in Path("/proc/self/fd").iterdir():
        with suppress(FileNotFoundError):  # that of the folder of this list
            found.append(str(each.readlink()))
    return [path for path in found if path.startswith(f"{folder}/")]


@pytest.mark.usefixtures("little")
@pytest.mark.skipif(sys.platform != "linux", reason="only Linux lists the open files of a process in files")
def test_a_list_is_a_list_and_leaves_no_file_even_if_the_process_is_killed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SPARK_LOCAL_DIRS", f"{tmp_path},/nowhere")
    items: LongList[int] = LongList(_encode, _decode)
    for number in range(10):
        items.append(number)
    assert not list(tmp_path.iterdir()), "it is deleted as soon as it is open"
    assert open_in(tmp_path)
    assert (list(items), items[3], items[7:], len(items)) == (list(range(10)), 3, [7, 8, 9], 10)
    with pytest.raises(IndexError):
        items[10]
    del items
    assert not open_in(tmp_path)
