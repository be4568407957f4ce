"""A changelog that goes on where its lane left it, or does not."""

from __future__ import annotations

import pytest

from light_scheduler.errors import Overtaken
from light_scheduler.kafka.batches import RecordBatches, Written
from light_scheduler.kafka.continuity import Continuity

CHANGELOG = ("changelog", 0)
END = 100


class Changelog:
    """What lies between offsets: `asked` are the ranges that were looked at."""

    def __init__(self, *, is_untouched: bool) -> None:
        self.is_untouched = is_untouched
        self.asked: list[tuple[int, int]] = []

    async def untouched(self, start: int, end: int) -> bool:
        self.asked.append((start, end))
        return self.is_untouched


def sent(begin: int, records: int = 3) -> RecordBatches:
    batches = RecordBatches(0)
    batches.written = {CHANGELOG: Written(records, begin + records), ("targets", 0): Written(1, 7)}
    return batches


async def test_transactions_that_follow_one_another_are_not_looked_into() -> None:
    log = Changelog(is_untouched=False)
    continuity = Continuity(CHANGELOG, END, log.untouched)
    await continuity.check(sent(END))
    await continuity.check(sent(END + 3 + 1))  # after the marker of the first
    assert log.asked == []


async def test_markers_that_were_late_and_aborted_records_change_nothing() -> None:
    log = Changelog(is_untouched=True)
    continuity = Continuity(CHANGELOG, END, log.untouched)
    await continuity.check(sent(END + 2))
    await continuity.check(sent(END + 6))
    assert log.asked == [(END, END + 2)]


async def test_records_that_follow_without_a_marker_between_are_committed_with_those_before(
    caplog: pytest.LogCaptureFixture,
) -> None:
    log = Changelog(is_untouched=False)
    continuity = Continuity(CHANGELOG, END, log.untouched)
    await continuity.check(sent(END))
    await continuity.check(sent(END + 3))
    await continuity.check(sent(END + 3 + 3 + 1))
    assert log.asked == []
    assert [record.message for record in caplog.records] == [
        "changelog-0 lacks the marker of the commit that ends at offset 103: the next transaction decides for both"
    ]


async def test_records_that_follow_an_abort_without_its_marker_are_not_committed() -> None:
    """A commit would commit what was aborted."""
    continuity = Continuity(CHANGELOG, END, Changelog(is_untouched=True).untouched)
    await continuity.check(sent(END))
    continuity.aborted()
    with pytest.raises(Overtaken, match="expected the next record at offset 104, found 103"):
        await continuity.check(sent(END + 3))


async def test_a_changelog_that_ends_before_what_was_restored_is_not_gone_on_with() -> None:
    continuity = Continuity(CHANGELOG, END, Changelog(is_untouched=True).untouched)
    with pytest.raises(Overtaken, match="found 99"):
        await continuity.check(sent(END - 1))


async def test_who_comes_second_gives_way() -> None:
    continuity = Continuity(CHANGELOG, END, Changelog(is_untouched=False).untouched)
    with pytest.raises(Overtaken, match="changelog-0: expected the next record at offset 100, found 104"):
        await continuity.check(sent(END + 4))


async def test_a_changelog_that_has_lost_records_is_not_gone_on_with() -> None:
    continuity = Continuity(CHANGELOG, END, Changelog(is_untouched=True).untouched)
    with pytest.raises(Overtaken, match="found 98"):
        await continuity.check(sent(END - 2))


async def test_what_is_about_other_topics_says_nothing() -> None:
    log = Changelog(is_untouched=False)
    continuity = Continuity(CHANGELOG, END, log.untouched)
    await continuity.check(RecordBatches(0))
    await continuity.check(sent(END))
