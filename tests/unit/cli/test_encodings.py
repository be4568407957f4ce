"""Arguments in another encoding than UTF-8, as a terminal or a script of old may have."""

from __future__ import annotations

import os
import sys

import pytest

from light_scheduler.cli import main

LATIN = os.fsdecode("café".encode("latin-1"))


@pytest.mark.parametrize(
    "arguments",
    [
        ["get", LATIN],
        ["why", LATIN],
        ["history", LATIN],
        ["list", "--tenant", LATIN],
        ["list", "--label", f"{LATIN}=x"],
        ["dead-letters", "show", LATIN],
        ["delays", "remove", LATIN],
        ["delays", "add", LATIN, "--source", "a", "--target", "b", "--delay", "5s"],
    ],
    ids=lambda arguments: " ".join(arguments[:2]).encode(errors="replace").decode(),
)
def test_an_argument_in_another_encoding_is_named(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], arguments: list[str]
) -> None:
    monkeypatch.setattr(sys, "argv", ["light-scheduler", *arguments, "--url", "http://127.0.0.1:1"])
    with pytest.raises(SystemExit) as ended:
        main()
    assert ended.value.code == 2
    assert capsys.readouterr().err.startswith(r"Error: 'caf\udce9")


def test_an_error_of_our_own_is_not_taken_for_one(monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(**_: object) -> None:
        "\ud800".encode()

    monkeypatch.setattr("light_scheduler.cli.cli", fail)
    monkeypatch.setattr(sys, "argv", ["light-scheduler", "list"])
    with pytest.raises(UnicodeEncodeError):
        main()
