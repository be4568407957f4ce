"""Commands that change what is stored in Kafka: who they say asked for it."""

from __future__ import annotations

import getpass
import os
import socket

import pytest

from light_scheduler.cli.on_kafka import caller
from light_scheduler.model import Requester


def test_the_caller_is_the_user_on_this_machine(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(getpass, "getuser", lambda: "ops")
    assert caller() == Requester("command line (ops)", socket.gethostname())


@pytest.mark.parametrize("error", [KeyError("getpwuid(): uid not found: 54321"), OSError("No username set")])
def test_a_caller_without_a_name_is_a_number(monkeypatch: pytest.MonkeyPatch, error: Exception) -> None:
    def no_name() -> str:
        raise error

    monkeypatch.setattr(getpass, "getuser", no_name)
    monkeypatch.setattr(os, "getuid", lambda: 54_321)
    assert caller() == Requester("command line (uid 54321)", socket.gethostname())
