"""Where a lane reads on when the log of commands is not what it was."""

from __future__ import annotations

import pytest
from aiokafka import TopicPartition

from light_scheduler.errors import BrokerError, LaneError, StateForeign
from light_scheduler.lanes.input.position import SETTLE_S, InputPosition, Start, foreign_owner, where_to_read
from light_scheduler.tables import Checkpoint
from light_scheduler.wire.state import CommandsLog

LOG = CommandsLog("id-1", "app", "commands")
AGAIN = LOG._replace(topic_id="id-2")
UNKNOWN = LOG._replace(topic_id="")


@pytest.mark.parametrize("known", [None, UNKNOWN, LOG])
@pytest.mark.parametrize("position", [10, 15, 20])
def test_reading_goes_on_where_it_stopped_while_the_log_has_that_place(known: CommandsLog, position: int) -> None:
    assert where_to_read(position, known, LOG, 10, 20) == Start(position)


def test_commands_that_were_deleted_unread_are_counted() -> None:
    start = where_to_read(10, LOG, LOG, 17, 20)
    assert start[:2] == (17, 7)
    assert "offsets 10 to 16 were deleted before they were read" in (start.problem or "")


@pytest.mark.parametrize("known", [None, UNKNOWN, LOG])
def test_nothing_that_is_left_of_a_log_that_was_cut_short_is_read_again(known: CommandsLog) -> None:
    start = where_to_read(30, known, LOG, 10, 20)
    assert start[:2] == (20, 0)
    assert "ends at offset 20, and commands up to 30 had been read" in (start.problem or "")


@pytest.mark.parametrize(("begin", "end"), [(0, 5), (0, 50), (3, 50)])
def test_a_topic_that_was_created_again_is_read_from_its_beginning(begin: int, end: int) -> None:
    start = where_to_read(30, LOG, AGAIN, begin, end)
    assert start[:2] == (begin, 0)
    assert "deleted and created again" in (start.problem or "")
    assert start.is_another_log


def test_state_belongs_to_the_application_and_topic_that_wrote_it() -> None:
    assert foreign_owner(None, LOG) is None
    assert foreign_owner(AGAIN, LOG) is None
    assert foreign_owner(LOG._replace(app_id="orders"), LOG) == "application orders with the commands topic commands"
    assert foreign_owner(LOG._replace(topic="eu"), LOG) == "application app with the commands topic eu"


class Place:
    """An `InputPosition` with a clock of its own."""

    def __init__(self) -> None:
        self.now = 0.0
        self.log_number = 0
        self.input = InputPosition(TopicPartition("commands", 0), "app", "changelog", lambda: self.now)

    def at(self, position: int, begin: int, end: int, log: CommandsLog | None = LOG, topic_id: str = "id-1") -> int:
        checkpoint = Checkpoint(position=position, commands_log=log)
        placed = self.input.place(checkpoint, topic_id, begin, end)
        assert placed.commands_log is not None
        assert placed.commands_log[:-1] == LOG._replace(topic_id=topic_id)[:-1]
        self.log_number = placed.commands_log.number
        return placed.position


def test_a_jump_is_counted_and_kept_for_those_who_ask() -> None:
    place = Place()
    assert (place.at(10, 0, 20), place.input.jumps, place.input.problem) == (10, 0, None)
    assert (place.at(10, 14, 20), place.input.jumps, place.input.expired) == (14, 1, 4)
    assert (place.at(14, 0, 9, topic_id="id-2"), place.input.jumps, place.input.expired) == (0, 2, 4)
    assert "created again" in (place.input.problem or "")


def test_a_log_that_ends_too_early_may_come_back() -> None:
    place = Place()
    for place.now in (0.0, SETTLE_S - 1):
        with pytest.raises(BrokerError, match="waiting for the rest of the log"):
            place.at(30, 0, 20)
    assert place.at(30, 0, 30) == 30
    place.now = 2 * SETTLE_S
    with pytest.raises(BrokerError):
        place.at(30, 0, 20)
    place.now = 3 * SETTLE_S
    assert place.at(30, 0, 20) == 20
    assert place.input.jumps == 1


def test_commands_are_not_read_from_a_topic_that_was_created_again_in_the_meantime() -> None:
    position = Place().input
    for known, topic_id in ((None, "id-1"), (LOG, "id-1"), (LOG, ""), (UNKNOWN, "id-1")):
        position.check(known, topic_id)
    with pytest.raises(LaneError, match="topic commands was deleted and created again"):
        position.check(LOG, "id-2")


def test_the_state_of_another_application_is_refused_by_its_names() -> None:
    with pytest.raises(StateForeign, match="topic changelog holds the state of application orders with the commands"):
        Place().at(10, 0, 20, LOG._replace(app_id="orders"))


def test_that_the_topic_was_created_again_is_known_until_the_position_is_stored() -> None:
    """If the lane fails before it knows, the new topic's id may be in the changelog."""
    place = Place()
    for _ in range(2):
        assert place.at(30, 0, 50, topic_id="id-2") == 0
        assert (place.input.has_jumped, place.input.is_in_another_log) == (True, True)
    assert place.at(5, 0, 50, AGAIN, topic_id="id-2") == 5
    assert not place.input.is_in_another_log
    assert place.at(30, 0, 50, topic_id="id-2") == 0
    place.input.is_stored()
    assert place.at(5, 10, 40, AGAIN, topic_id="id-2") == 10
    assert (place.input.has_jumped, place.input.is_in_another_log) == (True, False)


def test_a_log_has_the_next_number_if_its_offsets_have_been_given_out_before() -> None:
    place = Place()
    second = LOG._replace(number=1)
    assert (place.at(30, 0, 50), place.log_number) == (30, 0)
    assert (place.at(30, 40, 50), place.log_number) == (40, 0)
    assert (place.at(30, 0, 50, topic_id="id-2"), place.log_number) == (0, 1)
    assert (place.at(30, 0, 50, second), place.log_number) == (30, 1)
    assert (place.at(30, 0, 50, second, topic_id="id-2"), place.log_number) == (0, 2)
    with pytest.raises(BrokerError):
        place.at(30, 0, 20, second)
    place.now = SETTLE_S
    assert (place.at(30, 0, 20, second), place.log_number) == (20, 2)
    assert (place.at(30, 0, 50, None), place.log_number) == (30, 0)
