"""Dead letters of delay rules over HTTP: they are no tenant's, and cannot be redriven."""

from __future__ import annotations

from typing import Any

import pytest

from light_scheduler.model import DeadLetter, DeadLetterCause, Headers
from light_scheduler.wire import encode_dead_letter

NOW = 1_800_000_000_000
TOPIC = "light-scheduler-dead-letters"


@pytest.mark.parametrize("dropped", [[], [("dead-letter-dropped", b"they cannot be read")]], ids=["whole", "dropped"])
async def test_the_letter_of_a_delay_rule_is_not_redriven_and_the_answer_names_its_source(
    workers: Any, cluster: Any, dropped: Headers
) -> None:
    letter = DeadLetter(DeadLetterCause.REFUSED, "x", None, "default", None, NOW, NOW, "out", 1, 5, None, None, [])
    key, value, headers = encode_dead_letter(letter, "carts")
    cluster.topics.add(TOPIC, key, value, [*headers, *dropped])
    problem = await workers[0].ask("POST", "/api/v1/dead-letters/0-0/redrive", 409)
    assert problem["type"].endswith(":not-redrivable")
    assert "came from carts, partition 1, offset 5: that is not a commands topic" in problem["detail"]
