"""etf1's own admin over a worker in place of etf1's scheduler, and the worker's answers to the same requests.

The admin reads the schedules topic itself, and what is due today from the worker. So each answer of the worker is
compared with what etf1's own program makes of the same records.
"""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import aiohttp
import pytest
from support.application import Application
from support.etf1 import etf1_admin
from support.foreign import etf1_headers
from support.waiting import eventually

from light_scheduler.clock import SystemClock
from light_scheduler.kafka.connection import started_producer, stop_producer
from light_scheduler.testing import Kafka

pytestmark = pytest.mark.integration

DAY_S = 86_400
NAMES = ("order", "invoice", "reminder", "order-of-ann", "order-of-bob", "zebra", "apple", "mail", "mailing")
"""Ids without digits, which the admin's search passes over."""

SEARCHES: tuple[dict[str, str], ...] = (
    {},
    {"max": "3"},
    {"max": "0"},
    {"sort-by": "id asc"},
    {"sort-by": "id desc", "max": "4"},
    {"sort-by": "id"},
    {"sort-by": "epoch asc"},
    {"sort-by": "epoch desc"},
    {"sort-by": "timestamp asc"},
    {"sort-by": "timestamp desc"},
    {"sort-by": "ASC"},
    {"sort-by": "colour asc"},
    {"schedule-id": "order"},
    {"schedule-id": "zebra"},
    {"schedule-id": "nobody"},
    {"schedule-id": "order", "sort-by": "id desc", "max": "2"},
    {"epoch-from": "{third}", "sort-by": "epoch asc"},
    {"epoch-to": "{third}", "sort-by": "epoch asc"},
    {"epoch-from": "{third}", "epoch-to": "{sixth}", "sort-by": "id asc"},
    {"epoch-from": "{third}", "epoch-to": "{third}"},
    {"epoch-from": "0", "epoch-to": "0"},
    {"epoch-to": "1"},
)


@pytest.fixture
async def application(kafka: Kafka, tmp_path: Path) -> AsyncIterator[Application]:
    topic = f"admin-{tmp_path.name[-8:]}-{SystemClock().now()}"
    application = await Application.create(kafka.bootstrap_servers, tmp_path, commands_topics=f"{topic}:etf1")
    yield application
    application.close()


async def book(application: Application, first_due: int) -> list[int]:
    """Have all names scheduled, some seconds apart, and one more deleted; return the due times."""
    (topic,) = (source.name for source in application.settings.inputs)
    dues = [first_due + 10 * number for number in range(len(NAMES))]
    now = SystemClock().now()
    producer = await started_producer({"bootstrap_servers": application.bootstrap_servers})
    try:
        for number, (name, due) in enumerate(zip(NAMES, dues, strict=True)):
            headers = etf1_headers(due * 1_000, application.target)
            payload, written = b"payload of %d" % number, now - number % 4 * 5_000
            await producer.send_and_wait(topic, payload, name.encode(), headers=headers, timestamp_ms=written)
        await producer.send_and_wait(topic, b"x", b"deleted", headers=etf1_headers(first_due * 1_000, "mails"))
        await producer.send_and_wait(topic, None, b"deleted")
    finally:
        await stop_producer(producer)
    return dues


class Answers:
    """What the admin and the worker answer to the same requests of the admin's page."""

    def __init__(self, session: aiohttp.ClientSession, admin: str, worker: str, name: str) -> None:
        self._session = session
        self._roots = {"127.0.0.1": admin, name: f"{worker}/api"}

    async def of_both(self, path: str, **parameters: str) -> list[tuple[int, Any]]:
        """Return the status and document of each, without the name that the scheduler has there."""
        answers = []
        for name, root in self._roots.items():
            async with self._session.get(root + path.format(name=name), params=parameters) as response:
                text = await response.text()
                document = await response.json(content_type=None) if response.status == 200 else None
            answers.append((response.status, _without_name(document, name) if document is not None else None))
            assert response.status in (200, 404), text
        return answers


def _without_name(document: Any, name: str) -> Any:
    """Leave a scheduler's name out, which has to be as expected wherever it is."""
    if isinstance(document, list):
        return [_without_name(each, name) for each in document]
    if not isinstance(document, dict):
        return document
    if "schedules" in document:
        return document | {"schedules": _without_name(document["schedules"], name)}
    assert document.get("scheduler", name) == name
    return {field: value for field, value in document.items() if field != "scheduler"}


async def test_the_admin_shows_a_workers_schedules_and_the_worker_answers_its_page_as_it_does(
    application: Application, tmp_path: Path
) -> None:
    worker = await application.start_worker()
    today = SystemClock().now() // 1_000
    dues = await book(application, today + 600)
    edges = {"third": str(dues[2]), "sixth": str(dues[5])}
    of_today = [name for name, due in zip(NAMES, dues, strict=True) if due // DAY_S == today // DAY_S]
    async with (
        etf1_admin(worker.url, tmp_path) as admin,
        aiohttp.ClientSession() as session,
    ):
        answers = Answers(session, admin, worker.url, application.settings.app_id)

        async def are_known() -> bool:
            both = await answers.of_both("/stats")
            return both[0] == both[1] and both[0][1][0]["total"] == len(NAMES)

        await eventually(are_known, every=0.2, what="all schedules in both")
        for view in ("", "/live"):
            for search in SEARCHES:
                asked = {name: text.format(**edges) for name, text in search.items()}
                theirs, ours = await answers.of_both(f"{view}/scheduler/{{name}}/schedules", **asked)
                assert ours == theirs, (view, asked)
            for id in (*NAMES, "deleted", "nobody"):
                theirs, ours = await answers.of_both(f"{view}/scheduler/{{name}}/schedule/{id}")
                assert ours == theirs, (view, id)
                assert ours[0] == (200 if id in (of_today if view else NAMES) else 404), (view, id)
        (_, (theirs,)), (_, (ours,)) = await answers.of_both("/schedulers")
        assert theirs.keys() == ours.keys()
        assert theirs["http_port"] == ours["http_port"]
        (their_instance,), (our_instance,) = theirs["instances"], ours["instances"]
        assert our_instance == their_instance | {"hostname": ["127.0.0.1"]}
