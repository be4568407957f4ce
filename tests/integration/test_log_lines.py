"""The log of a real worker in JSON: what each line is about."""

from __future__ import annotations

import json
import os
import re
from typing import Any

import pytest
from support.application import Application
from support.reading import read_until
from support.waiting import eventually

pytestmark = pytest.mark.integration

TRACE, SENDER = "4bf92f3577b34da6a3ce929d0e0e4736", "00f067aa0ba902b7"
ID = 'order", "level": "ERROR\u202e'
"""An id that would be a field of its own, or turn the line around."""

OF_LANE = re.compile(r"\blane (?P<topic>\S+)-(?P<partition>\d+)\b")


def lines_of(log: str) -> list[dict[str, Any]]:
    """Return all lines that are complete; each has to be one object."""
    return [json.loads(line) for line in log.split("\n")[:-1]]


async def test_lines_name_partition_tenant_schedule_and_trace_where_they_are_about_one(
    application: Application,
) -> None:
    """The broker refuses a firing: its topic took larger messages when it was looked up."""
    narrowed = f"{application.target}-narrowed"
    await application.create_topic(narrowed, partitions=1)
    worker = await application.start_worker(log_format="json", delivery_retries="0")
    async with application.client() as client:
        await client.schedule("first", b"first", topic=narrowed, after=0)
        await read_until(application.bootstrap_servers, [narrowed], lambda records: len(records) == 1)
    await application.configure_topic(narrowed, **{"max.message.bytes": "20000"})
    async with application.client(tenant="shop") as client:
        accepted = await client.schedule(
            ID,
            os.urandom(30_000),
            topic=narrowed,
            after="1s",
            headers={"traceparent": f"00-{TRACE}-{SENDER}-01"},
        )

    def refusal() -> dict[str, Any] | None:
        said = lines_of(worker.log.read_text())
        return next((line for line in said if f"topic {narrowed} refused 1 records" in line["message"]), None)

    line = await eventually(refusal, what="a line about the refusal")
    commands = application.settings.topics.commands
    about = {name: line[name] for name in ("level", "topic", "partition", "tenant", "schedule", "trace_id")}
    assert about == {
        "level": "WARNING",
        "topic": commands,
        "partition": accepted.partition,
        "tenant": "shop",
        "schedule": ID,
        "trace_id": TRACE,
    }
    assert line["logger"].startswith("light_scheduler.lanes.")
    assert await worker.end() == 0
    said = lines_of(worker.log.read_text())
    of_lanes = [(each, found) for each in said if (found := OF_LANE.search(each["message"]))]
    assert {found["partition"] for _, found in of_lanes} >= {str(number) for number in range(4)}
    for each, found in of_lanes:
        assert (each.get("topic"), str(each.get("partition"))) == (found["topic"], found["partition"]), each
    others = [each for each in said if "partition" not in each]
    assert others, "what is about no partition names none"
    assert not any("schedule" in each or "tenant" in each for each in others)
