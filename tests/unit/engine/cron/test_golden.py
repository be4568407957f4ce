"""Each dialect against its Java original: the recorded answers, and the list of where ours differ and why."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest
from golden.cron.tables import DIALECTS, FOLDER, Difference, Table, differences, load

from light_scheduler.engine.cron import CronDialect, CronError, compile_cron

LIST: dict[str, Any] = msgspec.json.decode((FOLDER / "differences.json").read_bytes())


@pytest.fixture(scope="module", params=DIALECTS)
def dialect(request: pytest.FixtureRequest) -> CronDialect:
    chosen: CronDialect = request.param
    return chosen


@pytest.fixture(scope="module")
def table(dialect: CronDialect) -> Table:
    return load(dialect)


def listed(dialect: CronDialect, *, times: bool | None = None) -> list[tuple[str, Difference]]:
    """Return the listed differences of a dialect with their reasons: all, or those of times or of acceptance."""
    return [
        (key, Difference(entry) if isinstance(entry, str) else Difference(*entry))
        for key, entries in LIST["differences"][dialect].items()
        for entry in entries
        if times is None or times is not isinstance(entry, str)
    ]


def test_the_documentation_names_the_version_that_a_table_is_of(dialect: CronDialect, table: Table) -> None:
    document = (FOLDER.parents[2] / "docs" / "cron.md").read_text()
    row = next(line for line in document.splitlines() if line.startswith(f"| `{dialect}`"))
    assert table.original.rpartition(":")[2] in row


def test_a_fifth_weekday_is_never_one_of_the_next_month() -> None:
    fifth = compile_cron("0 0 8 ? * MON#5", "spring", "UTC")
    assert fifth.next_after(1_738_200_000_000) == 1_743_408_000_000  # from 2025-01-30 to 2025-03-31


def test_a_table_has_at_least_300_expressions_that_fire_20_times_from_5_starts_in_4_zones(table: Table) -> None:
    assert sum(isinstance(rows, list) for rows in table.answers.values()) >= 300
    assert table.count == 20
    assert len(set(table.zones)) == 4
    assert len(set(table.starts)) == 5


def test_every_answer_is_the_originals_but_for_those_listed(dialect: CronDialect, table: Table) -> None:
    assert differences(dialect, table).keys() == {difference for _, difference in listed(dialect)}


def test_what_the_original_refuses_is_refused_but_for_what_is_listed(dialect: CronDialect, table: Table) -> None:
    extensions = {difference.expression for _, difference in listed(dialect, times=False)}
    refused = [expression for expression, rows in table.answers.items() if rows == "refused"]
    assert len(refused) > 50
    for expression in refused:
        if expression not in extensions:
            with pytest.raises(CronError, match=rf"^not a {dialect} cron expression: .* \(column \d+\)$") as raised:
                compile_cron(expression, dialect)
            assert raised.value.field == "cron"
            position = raised.value.position
            assert position is not None
            assert 0 <= position <= len(expression)


def test_nothing_is_accepted_that_the_original_refuses_but_what_the_documentation_names(
    dialect: CronDialect, table: Table
) -> None:
    documented = {"names", "seconds and years", "step of 7"} if dialect == "unix" else set()
    acceptance = listed(dialect, times=False)
    assert {key for key, each in acceptance if table.answers[each.expression] == "refused"} == documented


def test_every_difference_is_listed_once_with_a_reason(dialect: CronDialect) -> None:
    entries = listed(dialect)
    assert len({difference for _, difference in entries}) == len(entries)
    assert {key for key, _ in entries} <= LIST["reasons"].keys()


def test_every_reason_is_that_of_a_difference() -> None:
    assert LIST["reasons"].keys() == {key for name in DIALECTS for key, _ in listed(name)}
