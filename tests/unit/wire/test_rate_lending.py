"""Records about tokens of rates that partitions lend to each other."""

from __future__ import annotations

import pytest
from support.partition import command

from light_scheduler.errors import InvalidCommand
from light_scheduler.model.rate_lending import ALL, RateAsk, RateGrant, RateKind, RateName
from light_scheduler.wire.lane_marks import mark_of
from light_scheduler.wire.rate_lending import RATE_ASKED, RATE_LENT, rate_headers, rate_in
from light_scheduler.wire.room_lending import ROOM_GIVEN
from light_scheduler.wire.signatures import require_signed_for

TOPIC, SECRET = "app-commands", b"of the workers"
ASK = RateAsk(RateName(RateKind.COMMANDS, "acme"), 3, 77, 1_500)
GRANT = RateGrant(RateName(RateKind.FIRINGS, ALL), 4, 77, 0)


@pytest.mark.parametrize(
    ("said", "name", "text"),
    [(ASK, RATE_ASKED, b"commands:acme:3:77:1500:"), (GRANT, RATE_LENT, b"firings::4:77:0:")],
)
def test_what_is_said_is_read_back_from_golden_headers(said: RateAsk | RateGrant, name: str, text: bytes) -> None:
    (header, value), (for_earlier_versions, _) = headers = rate_headers(said, TOPIC, 9, SECRET)
    assert value is not None
    assert (header, value[:-64], for_earlier_versions) == (name, text, ROOM_GIVEN)
    record = command(*headers, key=None, value=None, partition=9)
    assert mark_of(record) == said
    require_signed_for(record, TOPIC, SECRET)
    with pytest.raises(InvalidCommand):
        require_signed_for(command(*headers, key=None, value=None, partition=8), TOPIC, SECRET)


@pytest.mark.parametrize("name", [RATE_ASKED, RATE_LENT])
@pytest.mark.parametrize("value", [None, b"", b"commands:a:1", b"others:a:1:2:3:" + b"0" * 64, b"\xff" * 90])
def test_a_header_that_says_nothing_of_the_kind_is_refused(name: str, value: bytes | None) -> None:
    with pytest.raises(InvalidCommand, match="set by workers"):
        rate_in(name, value)
