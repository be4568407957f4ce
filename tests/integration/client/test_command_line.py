"""Commands of `light-scheduler` that send: what they print, and their exit codes."""

from __future__ import annotations

import asyncio
import sys

import msgspec
import pytest
from aiokafka import AIOKafkaProducer
from support.responder import responder

from light_scheduler.model import (
    REJECT_PAST,
    EventType,
    HistoryEvent,
    Once,
    Outcome,
    ScheduleCommand,
    Target,
    TopicNames,
)
from light_scheduler.testing import ExistingKafka, Kafka
from light_scheduler.wire import decode_history, decode_result, encode_history

from .test_client import AT, records_of

pytestmark = pytest.mark.integration


async def command_line(kafka: Kafka, names: TopicNames, *arguments: str) -> tuple[int, str, str]:
    """Run `light-scheduler` as a process of its own: exit code, output, errors."""
    settings = ["--app-id", names.app_id, "--broker", f"kafka://{kafka.bootstrap_servers}"]
    process = await asyncio.create_subprocess_exec(
        *(sys.executable, "-c", "from light_scheduler.cli import main; main()", *arguments, *settings),
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.PIPE,
    )
    output, errors = await process.communicate()
    assert process.returncode is not None
    return process.returncode, output.decode(), errors.decode()


async def test_the_command_line_schedules_with_every_option(kafka: Kafka, names: TopicNames) -> None:
    async with responder(kafka, names) as seen:
        code, output, errors = await command_line(
            kafka, names, "schedule", "--id", "a", "--tenant", "acme", "--key", "k", "--at", "2100-01-01T00:00:00Z",
            "--target-topic", "t", "--target-key", "tk", "--target-partition", "1", "--payload", "ž",
            "--header", "h=a=b", "--ttl", "5s", "--on-past", "reject", "--priority", "7", "--labels", "x=y",
            "--on-conflict", "fail", "--expected-version", "3", "--json",
        )  # fmt: skip
    assert (code, errors) == (0, "")
    result = decode_result(output.encode())
    assert (result.outcome, result.tenant, result.id) == (Outcome.SCHEDULED, "acme", "a")
    (command,) = seen
    assert isinstance(command, ScheduleCommand)
    assert (command.timing, command.payload, command.headers) == (Once(AT), "ž".encode(), [("h", b"a=b")])
    assert command.target == Target("t", b"tk", 1)
    assert (command.ttl, command.on_past, command.priority, command.labels) == (5_000, REJECT_PAST, 7, {"x": "y"})
    assert (command.on_conflict, command.expected_version, command.key) == ("fail", 3, b"k")


async def test_the_command_line_cancels_and_tells_it_in_a_line(kafka: Kafka, names: TopicNames) -> None:
    async with responder(kafka, names):
        cancelled = await command_line(kafka, names, "cancel", "a", "--key", "a")
    assert cancelled == (0, "cancelled default/a version 1\n", "")


async def test_the_command_line_warns_if_no_worker_tells_where_a_schedule_is(
    kafka: Kafka, names: TopicNames, unused_tcp_port: int
) -> None:
    nobody = f"http://127.0.0.1:{unused_tcp_port}"
    async with responder(kafka, names):
        code, output, errors = await command_line(kafka, names, "cancel", "a", "--url", nobody)
    assert (code, output) == (0, "cancelled default/a version 1\n")
    assert errors.startswith(f"warning: cannot reach a worker at {nobody}. ")
    assert errors.count("\n") == 1


async def test_the_command_line_ends_with_1_and_the_reason_when_refused(kafka: Kafka, names: TopicNames) -> None:
    async with responder(kafka, names):
        arguments = ("schedule", "--id", "refused-1", "--key", "refused-1", "--target-topic", "t")
        code, output, _ = await command_line(kafka, names, *arguments)
    assert (code, output) == (1, "rejected default/refused-1 version 1 (--target-topic: too large)\n")


async def test_the_command_line_need_not_wait(kafka: Kafka, names: TopicNames) -> None:
    arguments = ("schedule", "--key", "a", "--target-topic", "t", "--payload-base64", "/w==", "--no-wait", "--json")
    code, output, errors = await command_line(kafka, names, *arguments)
    assert (code, errors) == (0, "")
    (record,) = await records_of(kafka, names.commands, 1)
    assert record.value == b"\xff"
    assert msgspec.json.decode(output) == {
        "tenant": "default",
        "id": "a",
        "partition": record.partition,
        "offset": record.offset,
    }


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--at", "1767225600"], "--at: 1767225600 looks like seconds"),
        (["--at", "4102444800000", "--after", "5s"], "--after: is given together"),
        (["--header", "novalue"], "NAME=VALUE"),
        (["--payload", "a", "--payload-base64", "YQ=="], "given together"),
        (["--payload-base64", "?"], "not base64"),
        (["--timeout", "soon"], "not a duration"),
        (["--no-such-option"], "No such option"),
    ],
)
async def test_the_command_line_ends_with_2_on_wrong_use(
    kafka: Kafka, names: TopicNames, arguments: list[str], message: str
) -> None:
    code, output, errors = await command_line(kafka, names, "schedule", "--target-topic", "t", *arguments)
    assert (code, output) == (2, "")
    assert message in errors


@pytest.mark.parametrize("arguments", [["schedule", "--target-topic", "t"], ["cancel", "a", "--key", "a"], ["watch"]])
async def test_the_command_line_ends_with_1_when_the_broker_cannot_be_reached(
    unused_tcp_port: int, names: TopicNames, arguments: list[str]
) -> None:
    nowhere = ExistingKafka(f"127.0.0.1:{unused_tcp_port}")
    async with asyncio.timeout(120):
        code, output, errors = await command_line(nowhere, names, *arguments)
    assert (code, output) == (1, "")
    assert errors.startswith(f"Error: cannot reach Kafka at 127.0.0.1:{unused_tcp_port}")
    assert errors.count("\n") == 1


async def test_the_command_line_follows_the_history(kafka: Kafka, names: TopicNames) -> None:
    producer = AIOKafkaProducer(bootstrap_servers=kafka.bootstrap_servers)
    await producer.start()
    try:
        for id, kind in (("a", EventType.SCHEDULED), ("b", EventType.FIRED), ("a", EventType.FIRED)):
            event = HistoryEvent(kind, "default", id, 1, AT, AT + 7, 1, 1, "t", None, 0)
            await producer.send_and_wait(names.history, encode_history(event), b"one partition, one order")
    finally:
        await producer.stop()
    follow = ("watch", "--from-beginning", "--id-prefix", "a", "--limit", "2")
    code, output, errors = await command_line(kafka, names, *follow)
    assert (code, errors) == (0, "")
    assert output.splitlines() == [
        "2100-01-01T00:00:00.007Z scheduled     default/a v1 due 2100-01-01T00:00:00.000Z -> t",
        "2100-01-01T00:00:00.007Z fired         default/a v1 due 2100-01-01T00:00:00.000Z (+7 ms) -> t",
    ]
    code, output, _ = await command_line(kafka, names, *follow, "--json")
    assert [decode_history(line.encode()).event for line in output.splitlines()] == ["scheduled", "fired"]
