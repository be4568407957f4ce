from __future__ import annotations

import pytest
from support.foreign import karafka_headers, record
from support.partition import AT, HOUR

from light_scheduler.errors import InvalidCommand
from light_scheduler.model import ScheduleCommand
from light_scheduler.wire.dialects.karafka import KarafkaDialect


def _of_version(version: str) -> list[tuple[str, bytes | None]]:
    return [("schedule_schema_version", version.encode()), *karafka_headers(AT + HOUR)[1:]]


@pytest.mark.parametrize(
    ("known", "given"), [((1, 10, 0), "1.2.0"), ((1, 2, 0), "1.2.0"), ((1, 2, 10), "1.2.9"), ((1, 0, 0), "1.0.0")]
)
def test_a_version_that_is_known_or_older_is_read(known: tuple[int, int, int], given: str) -> None:
    command = KarafkaDialect(known).decode(record(b"a", b"x", _of_version(given)))
    assert isinstance(command, ScheduleCommand)


@pytest.mark.parametrize(("known", "given"), [((1, 2, 0), "1.10.0"), ((1, 0, 0), "1.0.1"), ((1, 10, 0), "2.0.0")])
def test_a_newer_version_is_refused(known: tuple[int, int, int], given: str) -> None:
    with pytest.raises(InvalidCommand, match="newer than") as caught:
        KarafkaDialect(known).decode(record(b"a", b"x", _of_version(given)))
    assert caught.value.field == "schedule_schema_version"
