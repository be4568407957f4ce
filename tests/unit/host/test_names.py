"""Addresses of names are looked up in bounded time."""

from __future__ import annotations

import socket
import threading
import time
from typing import Any

import pytest

from light_scheduler.host.names import addresses_of

Answer = tuple[Any, Any, int, str, tuple[Any, ...]]


def answer(*addresses: str) -> list[Answer]:
    return [(socket.AF_INET, socket.SOCK_STREAM, 6, "", (address, 0)) for address in addresses]


def test_each_address_of_a_name_is_returned_once(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(socket, "getaddrinfo", lambda *_, **__: answer("127.0.1.1", "10.0.0.7", "127.0.1.1"))
    assert addresses_of("node-1", 30) == ("127.0.1.1", "10.0.0.7")


@pytest.mark.parametrize("error", [socket.gaierror("unknown"), UnicodeError("label too long")])
def test_a_name_that_is_none_has_no_addresses(monkeypatch: pytest.MonkeyPatch, error: Exception) -> None:
    def refuse(*_: object, **__: object) -> list[Answer]:
        raise error

    monkeypatch.setattr(socket, "getaddrinfo", refuse)
    assert addresses_of("node-1", 30) == ()


def test_a_resolver_that_does_not_answer_is_waited_for_no_longer_than_said(monkeypatch: pytest.MonkeyPatch) -> None:
    goes_on = threading.Event()

    def resolve(*_: object, **__: object) -> list[Answer]:
        goes_on.wait(60)
        return answer("127.0.1.1")

    monkeypatch.setattr(socket, "getaddrinfo", resolve)
    begun = time.monotonic()
    try:
        assert addresses_of("node-1", 0.05) == ()
    finally:
        goes_on.set()
        for thread in threading.enumerate():
            if thread.name == "addresses of a name":
                thread.join()
    assert time.monotonic() - begun < 30
