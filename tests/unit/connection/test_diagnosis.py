"""Which servers are asked why a connection fails, and which answer counts."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from itertools import permutations
from typing import Any

import pytest
from aiokafka.errors import SaslAuthenticationFailed

from light_scheduler.connection import diagnosis
from light_scheduler.connection.diagnosis import fault_of
from light_scheduler.errors import BrokerError, BrokerRefused, BrokerUnreachable

SILENT = None
LETS_IN = "lets us in"
LONG_S = 60.0

Answer = Exception | str | None


class Servers:
    """Servers by name, and what each does with a connection."""

    def __init__(self, **answers: Answer) -> None:
        self._answers = answers
        self.asked: list[str] = []
        self.open: set[str] = set()
        self.most_open = 0

    @property
    def arguments(self) -> dict[str, Any]:
        servers = ",".join(f"{name}:9092" for name in self._answers)
        return {"bootstrap_servers": servers, "sasl_mechanism": "PLAIN", "sasl_plain_username": "orders"}

    async def connect(self, host: str, _port: int, _arguments: Mapping[str, Any]) -> None:
        self.asked.append(host)
        self.open.add(host)
        self.most_open = max(self.most_open, len(self.open))
        try:
            answer = self._answers[host]
            if answer is SILENT:
                await asyncio.Event().wait()
            if isinstance(answer, Exception):
                raise answer
        finally:
            self.open.remove(host)


def serving(monkeypatch: pytest.MonkeyPatch, **answers: Answer) -> Servers:
    servers = Servers(**answers)
    monkeypatch.setattr(diagnosis, "_connect", servers.connect)
    return servers


async def test_silent_servers_are_waited_for_side_by_side(monkeypatch: pytest.MonkeyPatch) -> None:
    servers = serving(monkeypatch, a=SILENT, b=SILENT, c=SILENT)
    fault = await fault_of(servers.arguments, 0.1)
    assert isinstance(fault, BrokerUnreachable)
    assert "a:9092,b:9092,c:9092" in str(fault)
    assert (sorted(servers.asked), servers.most_open, servers.open) == (["a", "b", "c"], 3, set())


async def test_one_that_lets_us_in_is_enough_and_no_other_is_waited_for(monkeypatch: pytest.MonkeyPatch) -> None:
    servers = serving(monkeypatch, a=SILENT, b=LETS_IN, c=ConnectionRefusedError())
    async with asyncio.timeout(LONG_S / 2):
        assert await fault_of(servers.arguments, LONG_S) is None
    assert servers.open == set(), "what was begun has ended"


@pytest.mark.parametrize("order", list(permutations(range(3))), ids=str)
async def test_a_refusal_says_more_than_a_connection_that_is_closed_and_that_more_than_nobody(
    order: tuple[int, ...], monkeypatch: pytest.MonkeyPatch
) -> None:
    answers: list[Answer] = [ConnectionRefusedError(), ConnectionResetError(), SaslAuthenticationFailed()]
    names = dict(zip("abc", (answers[number] for number in order), strict=True))
    refused = await fault_of(serving(monkeypatch, **names).arguments)
    assert isinstance(refused, BrokerRefused)
    assert "does not accept the password of user orders" in str(refused)
    without = {name: answer for name, answer in names.items() if not isinstance(answer, SaslAuthenticationFailed)}
    closed = await fault_of(serving(monkeypatch, **without).arguments)
    assert type(closed) is BrokerError
    assert "closes the connection" in str(closed)


async def test_an_error_that_nobody_has_thought_of_is_raised(monkeypatch: pytest.MonkeyPatch) -> None:
    servers = serving(monkeypatch, a=SILENT, b=ZeroDivisionError())
    with pytest.raises(ZeroDivisionError):
        await fault_of(servers.arguments, LONG_S)
    assert servers.open == set()
