"""Delay rules over HTTP, for the command line: what a server that is no worker answers is an error that says so."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Any

import pytest

from light_scheduler.errors import ClientError
from light_scheduler.web.delay_client import DelayClient

QUESTIONS: dict[str, Callable[[DelayClient], Awaitable[Any]]] = {
    "list": lambda client: client.list(),
    "put": lambda client: client.put("reminder", "a", "5s", "b"),
    "remove": lambda client: client.remove("reminder"),
}


@pytest.mark.parametrize("question", QUESTIONS)
@pytest.mark.parametrize(
    "answer",
    [(200, b"{}"), (200, b"<html>"), (200, b"null"), (200, b"\xff"), (302, b""), (404, b"<p>"), (500, b"{}")],
)
async def test_a_server_that_is_no_worker_is_named(
    monkeypatch: pytest.MonkeyPatch, question: str, answer: tuple[int, bytes]
) -> None:
    async def ask(*_: object, **__: object) -> tuple[int, bytes]:
        return answer

    monkeypatch.setattr(DelayClient, "ask", ask)
    with pytest.raises(ClientError, match=r"^http://127\.0\.0\.1:9 (is not a worker|answered)"):
        await QUESTIONS[question](DelayClient("http://127.0.0.1:9"))


async def test_the_reason_of_a_worker_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    async def ask(*_: object, **__: object) -> tuple[int, bytes]:
        return 403, b'{"type": "about:blank", "title": "x", "status": 403, "detail": "This needs a token."}'

    monkeypatch.setattr(DelayClient, "ask", ask)
    with pytest.raises(ClientError, match="This needs a token"):
        await DelayClient("http://127.0.0.1:9").list()


async def test_a_rule_is_removed(monkeypatch: pytest.MonkeyPatch) -> None:
    async def ask(*_: object, **__: object) -> tuple[int, bytes]:
        return 204, b""

    monkeypatch.setattr(DelayClient, "ask", ask)
    await DelayClient("http://127.0.0.1:9").remove("reminder")
