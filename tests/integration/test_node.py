"""A node of two processes behind one port: one is killed while it fires, and the node is asked to end."""

from __future__ import annotations

import asyncio
import json
import os
import re
import signal
from collections import Counter
from typing import Any

import aiohttp
import pytest
from support.application import Application, WorkerProcess, port_with_room
from support.processes import process_runs
from support.reading import header, read_all, read_until
from support.waiting import eventually

pytestmark = pytest.mark.integration

COUNT = 3_000
STEP_MS = 3
STARTED = re.compile(r"process (\d) is (\d+)")


def lines(worker: WorkerProcess) -> list[dict[str, Any]]:
    """Return the lines of the log; the last one may not be complete yet, and is left out then."""
    text = worker.log.read_text()
    return [json.loads(line) for line in text[: text.rfind("\n") + 1].splitlines()]


def pids(worker: WorkerProcess) -> list[tuple[str, int]]:
    """Return (number, pid) of each process that was started, in order."""
    said = (line["message"] for line in lines(worker) if line["process"] == "supervisor")
    return [(found[1], int(found[2])) for message in said if (found := STARTED.fullmatch(message))]


class Poller:
    """Asks the front port again and again, each time by a new connection."""

    def __init__(self, worker: WorkerProcess) -> None:
        self.statuses: Counter[int] = Counter()
        self.broken = 0
        """Requests whose process was killed while it had them."""
        self._url = worker.url
        self._task = asyncio.create_task(self._run())

    async def _run(self) -> None:
        async with aiohttp.ClientSession(connector=aiohttp.TCPConnector(force_close=True)) as session:
            while True:
                try:
                    async with session.get(f"{self._url}/live") as response:
                        self.statuses[response.status] += 1
                except aiohttp.ClientConnectorError:
                    raise
                except aiohttp.ClientConnectionError:
                    self.broken += 1
                await asyncio.sleep(0.02)

    async def end(self) -> Counter[int]:
        """Return how often which status came. Raises what a request has raised."""
        self._task.cancel()
        await asyncio.gather(self._task, return_exceptions=True)
        if not self._task.cancelled() and (error := self._task.exception()) is not None:
            raise error
        return self.statuses


async def test_a_node_loses_and_doubles_nothing_when_a_process_is_killed_and_answers_throughout(
    application: Application,
) -> None:
    port = str(port_with_room(2))
    node = await application.start_worker(processes="2", web_port=port, log_format="json", session_timeout="10s")
    await node.shows(lambda info: Counter(lane["state"] for lane in info["lanes"]) == {"running": 4})
    poller = Poller(node)
    async with application.client() as client:
        await client.schedule_many(
            {"id": f"s-{number}", "topic": application.target, "after": 2_000 + number * STEP_MS}
            for number in range(COUNT)
        )
    await read_until(application.bootstrap_servers, [application.target], lambda records: len(records) > COUNT // 8)
    number, pid = pids(node)[1]
    os.kill(pid, signal.SIGKILL)

    await eventually(lambda: len(pids(node)) == 3)
    assert pids(node)[2][0] == number
    await read_until(application.bootstrap_servers, [application.target], lambda records: len(records) >= COUNT)
    await node.ready()
    records = await read_all(application.bootstrap_servers, application.target)
    assert Counter(header(record, "schedule-id") for record in records) == {f"s-{n}": 1 for n in range(COUNT)}
    statuses = await poller.end()
    assert set(statuses) == {200}
    assert statuses[200] > 50
    assert poller.broken <= 1
    async with aiohttp.ClientSession() as session, session.get(f"{node.url}/metrics") as response:
        assert f'light_scheduler_process_restarts_total{{process="{number}"}} 1.0' in await response.text()

    assert await node.end() == 0
    assert not any(process_runs(pid) for _, pid in pids(node))
    assert {line["process"] for line in lines(node)} == {"supervisor", "0", "1"}
    assert f"process {number} ended by signal 9; starting it again in 1 s" in [line["message"] for line in lines(node)]
    for folder in (node.data_dir, node.data_dir / "1"):
        assert (folder / application.settings.app_id).is_dir()


@pytest.mark.soak
async def test_processes_end_in_order_when_their_supervisor_is_killed(application: Application) -> None:
    node = application.new_worker(processes="2", web_port=str(port_with_room(2)), log_format="json")
    node.start()
    found = await eventually(lambda: each if len(each := pids(node)) == 2 else None)
    await node.ready()
    await node.shows(lambda info: len(info["lanes"]) == 4)

    os.kill(node.pid, signal.SIGKILL)

    await eventually(lambda: not any(process_runs(pid) for _, pid in found))
    assert [line["message"] for line in lines(node) if line["level"] not in ("DEBUG", "INFO")] == []


async def test_settings_that_no_process_can_run_with_end_the_node_at_once(application: Application) -> None:
    port = port_with_room(2)
    taken = await asyncio.start_server(lambda _, writer: writer.close(), "127.0.0.1", port + 2)
    async with taken:
        node = application.new_worker(processes="2", web_port=str(port), log_format="json")
        node.start()
        assert await node.ended() == 2
    messages = [line["message"] for line in lines(node)]
    assert any(f"port {port + 2} of 127.0.0.1 is in use" in message for message in messages)
    assert any("process 1 ended with exit code 2. The node stops" in message for message in messages)


async def test_a_payload_decoder_that_cannot_be_loaded_ends_the_worker_with_its_name(application: Application) -> None:
    worker = application.new_worker(payload_decoder="nothing_here:decode")
    worker.start()
    assert await worker.ended() != 0
    log = worker.log.read_text()
    assert "setting payload_decoder: nothing_here:decode cannot be imported: ModuleNotFoundError" in log
    assert "Traceback" not in log
