"""The supervisor with processes that are scripts: starting, signals, sockets, and the end."""

from __future__ import annotations

import asyncio
import logging
import os
import signal
import subprocess
import sys
from asyncio.subprocess import Process
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from support.processes import process_runs
from support.waiting import eventually

from light_scheduler.errors import ConfigurationError
from light_scheduler.host.listening import listening_at
from light_scheduler.host.systemd import Notifications
from light_scheduler.node import supervisor as module
from light_scheduler.node.supervisor import Supervisor, run
from light_scheduler.settings import Settings

BEGIN = """
import json, os, signal, sys, time
job = json.loads(sys.stdin.readline())
number = job["process"][0]
def note(text): open(f"{job['settings']['data_dir']}-{os.getpid()}-{text}", "x").close()
"""
TELLS = BEGIN + "note('begun')\n"
STOPS = TELLS + "signal.signal(signal.SIGTERM, lambda *_: sys.exit(0)); note('listens'); signal.pause()"
IGNORES = TELLS + "signal.signal(signal.SIGTERM, signal.SIG_IGN); note('listens'); time.sleep(60)"
ONE_CANNOT_RUN = TELLS + "sys.exit(78) if number else signal.pause()"
SERVES = TELLS + (
    "import socket\n"
    "shared = socket.socket(fileno=job['sockets'][0]); shared.setblocking(True)\n"
    "note('listens'); accepted, _ = shared.accept(); accepted.sendall(b'%d' % number); accepted.close()"
)


class Node:
    """A supervisor of two scripts, and the files that these leave: `<number>-<pid>-<what>`."""

    def __init__(self, folder: Path, script: str, notifications: Notifications | None = None) -> None:
        self.folder = folder
        self.sockets = listening_at("127.0.0.1", 0)
        self.port = self.sockets[0].getsockname()[1]
        settings = [replace(Settings(), data_dir=folder / str(number), web_port=1) for number in range(2)]
        self._supervisor = Supervisor(
            settings, self.sockets, notifications or Notifications({}), (sys.executable, "-c", script)
        )
        self.task = asyncio.create_task(self._supervisor.run())

    def noted(self, what: str) -> list[tuple[int, int]]:
        """Return (number, pid) of what has left a note."""
        names = [path.name.split("-") for path in self.folder.iterdir()]
        return sorted((int(number), int(pid)) for number, pid, noted in names if noted == what)

    async def all_noted(self, what: str, count: int = 2) -> list[tuple[int, int]]:
        return await eventually(lambda: found if len(found := self.noted(what)) >= count else None)


async def test_a_node_that_is_asked_ends_in_order_and_with_all_its_processes(tmp_path: Path) -> None:
    node = Node(tmp_path, STOPS)
    pids = [pid for _, pid in await node.all_noted("listens")]
    os.kill(os.getpid(), signal.SIGTERM)
    assert await node.task == 0
    assert not any(map(process_runs, pids))


async def test_a_process_that_is_killed_is_started_again_and_the_other_left_alone(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    node = Node(tmp_path, STOPS)
    (first, pid), (second, other) = await node.all_noted("listens")
    assert (first, second) == (0, 1)
    os.kill(pid, signal.SIGKILL)
    *_, newest = [each for each in await node.all_noted("listens", 3) if each[1] not in (pid, other)]
    assert newest[0] == 0
    assert process_runs(other)
    assert "process 0 ended by signal 9; starting it again in 1 s" in caplog.text
    os.kill(os.getpid(), signal.SIGINT)
    assert await node.task == 0


async def test_a_second_signal_kills_what_does_not_end(tmp_path: Path) -> None:
    node = Node(tmp_path, IGNORES)
    pids = [pid for _, pid in await node.all_noted("listens")]
    os.kill(os.getpid(), signal.SIGTERM)
    await eventually(lambda: all(each.fileno() < 0 for each in node.sockets))
    assert all(map(process_runs, pids))
    os.kill(os.getpid(), signal.SIGTERM)
    assert await node.task == 1
    assert not any(map(process_runs, pids))


async def test_what_does_not_end_in_time_is_killed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(module, "STOP_TIMEOUT_S", 0.2)
    node = Node(tmp_path, IGNORES)
    await node.all_noted("listens")
    os.kill(os.getpid(), signal.SIGTERM)
    assert await node.task == 1
    assert "2 processes have not ended within 0.2 s: killing them" in caplog.text


async def test_a_process_that_cannot_run_ends_the_node(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    node = Node(tmp_path, ONE_CANNOT_RUN)
    assert await node.task == 1
    assert "process 1 ended with exit code 78. The node stops: it would end the same way again" in caplog.text
    assert not any(process_runs(pid) for _, pid in node.noted("begun"))


async def test_processes_take_connections_from_one_port(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    node = Node(tmp_path, SERVES)
    await node.all_noted("listens")
    answers = set()
    for _ in range(2):  # each takes one and ends
        reader, writer = await asyncio.open_connection("127.0.0.1", node.port)
        answers.add(await reader.read())
        writer.close()
    assert answers == {b"0", b"1"}
    os.kill(os.getpid(), signal.SIGTERM)
    await node.task


async def test_a_process_that_hangs_is_killed_and_started_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    hanging: set[int] = set()

    async def is_alive(member: module._Member) -> bool:
        return member.number not in hanging

    monkeypatch.setattr(module, "_is_alive", is_alive)
    monkeypatch.setattr(module, "ASK_EVERY_S", 0.01)
    node = Node(tmp_path, STOPS)
    before = await node.all_noted("listens")
    hanging.add(1)
    await eventually(lambda: "process 1 has not answered for too long: killing it" in caplog.text)
    hanging.clear()
    after = await node.all_noted("listens", 3)
    assert [number for number, pid in after if (number, pid) not in before] == [1]
    os.kill(os.getpid(), signal.SIGTERM)
    assert await node.task == 0


@pytest.mark.parametrize(
    "error", [BlockingIOError(11, "Resource temporarily unavailable"), RuntimeError("can't start new thread")]
)
async def test_a_process_that_the_machine_has_no_room_for_is_started_later_and_the_other_left_alone(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture, error: Exception
) -> None:
    refusals = [error] * 6  # more than a process that ends by itself may fail
    start = asyncio.create_subprocess_exec
    monkeypatch.setattr("light_scheduler.host.restarts.LONGEST_PAUSE_S", 0.01)
    node = Node(tmp_path, STOPS)
    (_, killed), (_, other) = await node.all_noted("listens")

    async def refused(*arguments: str, **options: Any) -> Process:
        if refusals:
            raise refusals.pop()
        return await start(*arguments, **options)

    monkeypatch.setattr(asyncio, "create_subprocess_exec", refused)
    os.kill(killed, signal.SIGKILL)
    await node.all_noted("listens", 3)
    assert caplog.text.count(f"process 0 cannot be started ({error}); trying again in 0.01 s") == 6
    assert process_runs(other)
    os.kill(os.getpid(), signal.SIGTERM)
    assert await node.task == 0


async def test_a_node_that_has_no_room_for_its_processes_still_ends_when_asked(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    async def refused(*_: str, **__: Any) -> Process:
        raise BlockingIOError(11, "Resource temporarily unavailable")

    monkeypatch.setattr(asyncio, "create_subprocess_exec", refused)
    monkeypatch.setattr("light_scheduler.host.restarts.FIRST_PAUSE_S", 30.0)
    node = Node(tmp_path, STOPS)
    await eventually(lambda: caplog.text.count("cannot be started") == 2)
    os.kill(os.getpid(), signal.SIGTERM)
    async with asyncio.timeout(15):
        assert await node.task == 0


async def test_a_process_that_cannot_be_asked_for_want_of_a_thread_is_left_alone(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    async def refused(*_: object, **__: object) -> bool:
        raise RuntimeError("can't start new thread")

    monkeypatch.setattr(asyncio, "to_thread", refused)
    member = module._Member(Settings(), 0)
    assert await module._is_alive(member)
    assert not await module._answers(member, "/ready")


def test_a_process_takes_no_module_from_the_current_folder(tmp_path: Path) -> None:
    (tmp_path / "msgspec.py").write_text("raise SystemExit('not the library')")
    ended = subprocess.run(module.WORKER, cwd=tmp_path, input="", capture_output=True, text=True, check=False)
    assert "Input data was truncated" in ended.stderr, "of the job, which there is none of"
    assert "not the library" not in ended.stderr


def test_a_port_in_use_is_said_before_anything_is_started(tmp_path: Path) -> None:
    (taken,) = listening_at("127.0.0.1", 0)
    with taken:
        port = taken.getsockname()[1]
        with pytest.raises(ConfigurationError, match=f"web_port: cannot listen on port {port} of 127.0.0.1"):
            run(Settings(web_port=port, data_dir=tmp_path), 2)


@pytest.fixture(autouse=True)
def lines(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.INFO)
