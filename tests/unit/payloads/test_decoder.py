"""The process that decodes, and what payloads and hooks can do to it."""

from __future__ import annotations

import asyncio
import os
import sys
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest
from support.waiting import eventually

from light_scheduler.errors import ConfigurationError
from light_scheduler.payloads import decoder, job
from light_scheduler.payloads.decoder import Decoder
from light_scheduler.payloads.job import MOST_BYTES, Decoded, Job

HOOKS = """
import os
import sys
import time

NUMBER = 5

def length(payload, headers, topic):
    print("printed")
    assert sys.stdin.read() == ""
    return {"length": len(payload), "headers": headers, "topic": topic, "pid": os.getpid()}

def by_text(payload, headers, topic):
    text = payload.decode()
    if text == "endless":
        while True:
            pass
    if text == "exit":
        os._exit(3)
    if text == "raise":
        raise LookupError("unknown")
    if text == "memory":
        return "x" * (16 << 30)
    return text

class Late:
    decode = staticmethod(length)
"""


@pytest.fixture
def hooks(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Make a module of hooks that this process could import."""
    (tmp_path / "hooks_of_test.py").write_text(HOOKS)
    (tmp_path / "broken_hooks_of_test.py").write_text("raise RuntimeError('no licence')")
    monkeypatch.syspath_prepend(tmp_path)


@asynccontextmanager
async def decoding(hook: str | None) -> AsyncIterator[Callable[..., Any]]:
    """Yield a function that decodes a payload."""
    decoder = Decoder(hook)

    async def decode(payload: bytes, **fields: Any) -> Decoded | None:
        return await decoder.decode(Job(payload=payload, headers=[("h", b"1")], topic="out", **fields))

    await decoder.check()
    try:
        yield decode
    finally:
        await decoder.close()


@pytest.mark.parametrize("hook", ["hooks_of_test:length", "hooks_of_test:Late.decode"])
@pytest.mark.usefixtures("hooks")
async def test_a_hook_runs_in_another_process(hook: str) -> None:
    async with decoding(hook) as decode:
        first, second = await decode(b"abc"), await decode(b"x" * MOST_BYTES)
    assert first.by == "hook"
    assert first.json.startswith('{"length":3,"headers":[["h","MQ=="]],"topic":"out","pid":')
    pids = {each.json.rpartition(":")[2] for each in (first, second)}
    assert len(pids) == 1
    assert f"{os.getpid()}}}" not in pids


@pytest.mark.parametrize(
    ("hook", "reason"),
    [
        ("nothing_of_test:f", "nothing_of_test:f cannot be imported: ModuleNotFoundError: No module named"),
        ("hooks_of_test:f", "hooks_of_test:f cannot be imported: AttributeError:"),
        ("broken_hooks_of_test:f", "broken_hooks_of_test:f cannot be imported: RuntimeError: no licence"),
        ("hooks_of_test:NUMBER", "hooks_of_test:NUMBER is of the type int, which cannot be called"),
    ],
)
@pytest.mark.usefixtures("hooks")
async def test_a_hook_that_cannot_be_used_is_refused_at_the_start(hook: str, reason: str) -> None:
    with pytest.raises(ConfigurationError) as caught:
        async with decoding(hook):
            pass
    assert caught.value.setting == "payload_decoder"
    assert caught.value.reason.startswith(reason)


@pytest.mark.usefixtures("hooks")
async def test_what_a_hook_does_to_its_process_is_an_error_and_the_next_payload_is_decoded(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    errors = {
        b"endless": "it took longer than 1 s",
        b"exit": "the decoding process failed: it ended with code 3",
        b"raise": "LookupError: unknown",
        b"memory": "it takes too much memory",
        b"x" * (MOST_BYTES + 1): "the payload is larger than 4 MiB",
    }
    async with decoding("hooks_of_test:by_text") as decode:
        for payload, error in errors.items():
            monkeypatch.setattr(decoder, "TIME_LIMIT_S", 1.0 if payload == b"endless" else 60.0)
            assert await decode(payload) == Decoded(by="hook", error=error)
            monkeypatch.setattr(decoder, "TIME_LIMIT_S", 60.0)
            assert await decode(b"fine") == Decoded(by="hook", text="fine")


@pytest.mark.usefixtures("hooks")
async def test_a_request_that_is_given_up_leaves_no_answer_to_the_next() -> None:
    async with decoding("hooks_of_test:by_text") as decode:
        waiting = [asyncio.create_task(decode(text)) for text in (b"endless", b"a", b"b")]
        await asyncio.sleep(0)
        waiting[0].cancel()
        assert await asyncio.gather(*waiting[1:]) == [Decoded(by="hook", text=text) for text in "ab"]


async def test_without_a_hook_the_process_starts_with_the_first_payload(monkeypatch: pytest.MonkeyPatch) -> None:
    started: list[object] = []
    start = asyncio.create_subprocess_exec

    async def noted(*arguments: Any, **options: Any) -> Any:
        started.append(arguments)
        return await start(*arguments, **options)

    monkeypatch.setattr(asyncio, "create_subprocess_exec", noted)
    async with decoding(None) as decode:
        assert started == []
        assert await decode(b'{"a":1}', masked=("a",)) == Decoded(by="json", json='{"a":"********"}')
        assert await decode(b"no json", masked=("a",)) is None
    assert len(started) == 1


async def test_the_process_ends_with_the_worker_even_while_it_decodes(tmp_path: Path) -> None:
    """What it does when nobody is left to kill it."""
    (tmp_path / "hooks_of_test.py").write_text(HOOKS)
    process = await asyncio.create_subprocess_exec(
        *(sys.executable, "-P", "-m", "light_scheduler.payloads.process"),
        stdin=asyncio.subprocess.PIPE,
        stdout=asyncio.subprocess.PIPE,
    )
    await decoder._exchanged(process, job.Start("hooks_of_test:by_text", [str(tmp_path), *sys.path]))
    endless = Job(payload=b"endless", headers=[], topic="out")
    asking = asyncio.create_task(decoder._exchanged(process, endless))
    await eventually(asking.done, within=job.TIME_LIMIT_S + 60, what="the process's end")
    with pytest.raises(decoder._EndedError, match="code -14"):
        asking.result()
    assert process.stdin is not None
    process.stdin.close()
