"""A command in headers, and its JSON form, are the same command."""

from __future__ import annotations

import msgspec
import pytest
from aiokafka.structs import ConsumerRecord

from light_scheduler.client.commands import (
    CommandToSend,
    complete_command,
    control_command,
    control_many_command,
    extend_command,
    reschedule_command,
    reschedule_many_command,
    schedule_command,
)
from light_scheduler.model import Headers, ReplyTo
from light_scheduler.wire import dialect_named
from light_scheduler.wire.json_form import in_json_form

AT = 1_767_225_600_000
REPLY = ReplyTo("answers", b"c-1", 3)
COMMANDS = {
    "one-shot": schedule_command("default", {"id": "a", "topic": "t", "after": "5m", "payload": b"\x00\xff"}),
    "cron": schedule_command(
        "acme",
        {
            "id": "ä-1",
            "key": b"\x00key\xff",
            "topic": "t",
            "target_key": b"\xfe",
            "target_partition": 4,
            "headers": [("x", b"\xff"), ("x", None), ("content-type", b"application/json")],
            "cron": "0 9 * * MON-FRI",
            "timezone": "Europe/Paris",
            "jitter": "5s",
            "labels": {"team": "billing", "odd": "a=b"},
            "ttl": "10m",
            "priority": 5,
            "on_conflict": "keep",
            "misfire": "skip",
        },
        reply_to=REPLY,
    ),
    "tombstone": schedule_command("default", {"id": "a", "topic": "t", "payload": None, "target_key": None}),
    "backoff": schedule_command("default", {"key": "k", "topic": "t", "backoff": "1s,2s,4s"}),
    "one": control_command("pause", "acme", "a", key=b"\xff", expected_version=3, reply_to=REPLY),
    "many": control_many_command("cancel", "acme", {"id_prefix": "order-", "labels": {"team": "x"}}, reply_to=REPLY),
    "all": reschedule_many_command("acme", {"everything": True}, {"after": "5m"}),
    "reschedule": reschedule_command("acme", "a", {"every": "1h", "max_firings": 3}),
    "complete": complete_command("acme", f"a@{AT}", 2, succeeded=False),
    "extend": extend_command("acme", f"a@{AT}", 2, ack_timeout="5m"),
}


def record(command: CommandToSend, value: bytes | None, headers: Headers) -> ConsumerRecord:
    return ConsumerRecord("commands", 3, 42, AT, 0, command.key, value, None, -1, -1, tuple(headers))


@pytest.mark.parametrize("name", COMMANDS)
def test_the_json_form_says_what_the_headers_say(name: str) -> None:
    command = COMMANDS[name]
    native = dialect_named("native").decode(record(command, command.value, command.headers))

    in_json = record(command, *in_json_form(command.value, command.headers))

    for dialect in ("native", "json", "karafka", "etf1", "skyuk", "light4j"):
        read = dialect_named(dialect).decode(in_json)
        assert msgspec.structs.asdict(read) == msgspec.structs.asdict(native), dialect
