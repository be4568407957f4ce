"""Every command that prints data, against a real worker, in each format that programs read."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import click
import pytest
import yaml
from click.testing import CliRunner
from sqlalchemy import MetaData, create_engine
from support.application import Application
from support.waiting import eventually

from light_scheduler.cli import cli
from light_scheduler.outbox import Outbox

pytestmark = pytest.mark.integration

ID = "order-1"
OF_OTHER_TESTS = {"bench", "outbox import-ajenda"}
"""Besides the jobs on Spark: they need more than a worker, or take longer than all others together."""

Call = Callable[[dict[str, str]], list[str]]


def _is(text: str) -> Call:
    return lambda found: [found.get(word, word) for word in text.split()]


CALLS: dict[str, Call] = {
    "preview": _is("--every 1h"),
    "dry-run": _is("--from-file FILE --until 2100-01-01T00:00:00Z"),
    "config list": _is(""),
    "config show": _is("here"),
    "topics create": _is(""),
    "topics check": _is(""),
    "topics grow": _is("--partitions PARTITIONS"),
    "doctor": _is(""),
    "schedule": _is(f"--id {ID} --every 1h --target-topic TARGET"),
    "reschedule": _is(f"{ID} --every 2h"),
    "pause": _is(ID),
    "resume": _is(ID),
    "trigger": _is(ID),
    "complete": _is(f"{ID}@1893456000000"),
    "extend": _is(f"{ID}@1893456000000"),
    "get": _is(ID),
    "list": _is(""),
    "history": _is(ID),
    "why": _is(ID),
    "watch": _is(f"--from-beginning --id-prefix {ID} --limit 2"),
    "cancel": _is("order-2"),
    "dead-letters list": _is(""),
    "dead-letters show": _is("LETTER"),
    "dead-letters redrive": _is("LETTER LETTER"),
    "delays add": _is("later --source SOURCE --delay 1h --target TARGET"),
    "delays list": _is(""),
    "delays remove": _is("later"),
    "tenants set": _is("shop --weight 3"),
    "tenants list": _is(""),
    "tenants show": _is("shop"),
    "tenants pause": _is("shop"),
    "tenants resume": _is("shop"),
    "tenants delete": _is("shop --yes"),
    "outbox relay": _is("--drain --database DATABASE"),
    # From the first token on, a worker wants one: these are the last.
    "tokens create": _is("ops --role admin --all-tenants"),
    "tokens list": _is(""),
    "tokens rotate": _is("TOKEN"),
    "tokens revoke": _is("TOKEN"),
}


def data_commands(group: click.Group = cli, path: str = "") -> set[str]:
    """The commands that take `-o`."""
    found: set[str] = set()
    context = click.Context(group)
    for name in group.list_commands(context):
        command = group.get_command(context, name)
        if isinstance(command, click.Group):
            found |= data_commands(command, f"{path}{name} ")
        elif command is not None and any("-o" in option.opts for option in command.params):
            found.add(f"{path}{name}")
    return found


def test_no_command_that_prints_data_is_forgotten() -> None:
    assert {name for name in data_commands() if not name.startswith("pipeline ")} - OF_OTHER_TESTS == set(CALLS)


@pytest.fixture
async def found(served: Application, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> dict[str, str]:
    """Words of `CALLS`, and the arguments that stand for them. The environment names the application."""
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path))
    for name in ("app_id", "broker"):
        monkeypatch.setenv(f"LIGHT_SCHEDULER_{name.upper()}", served.options[name])
    monkeypatch.setenv("LIGHT_SCHEDULER_URL", served.workers[0].url)
    commands = tmp_path / "commands.jsonl"
    commands.write_text('{"id": "a", "trigger": {"after": "1m"}, "target": {"topic": "t"}}\n')
    metadata = MetaData()
    Outbox(metadata)
    metadata.create_all(create_engine(f"sqlite:///{tmp_path}/shop.db"))
    await served.create_topic(f"{served.target}-source")
    async with served.sender() as send:
        await send("a", b"", id="a", ttl="nonsense", target_topic=served.target)
    assert (await asyncio.to_thread(CliRunner().invoke, cli, ["config", "add", "here"])).exit_code == 0

    async def letter() -> str | None:
        page = json.loads((await invoke("dead-letters", "list", "--json")).stdout)
        return next((each["letter"] for each in page["dead_letters"]), None)

    return {
        "FILE": str(commands),
        "DATABASE": f"sqlite:///{tmp_path}/shop.db",
        "TARGET": served.target,
        "SOURCE": f"{served.target}-source",
        "PARTITIONS": str(served.settings.partitions),
        "LETTER": await eventually(letter, every=0.2, what="a dead letter"),
    }


async def invoke(*arguments: str) -> Any:
    ran = await asyncio.to_thread(CliRunner().invoke, cli, list(arguments))
    assert ran.exception is None or isinstance(ran.exception, SystemExit), (arguments, ran.exception)
    assert ran.exit_code in (0, 1), (arguments, ran.output)
    return ran


@pytest.mark.soak
@pytest.mark.every_case
async def test_programs_can_read_what_each_command_prints(found: dict[str, str]) -> None:
    async def printed(name: str, format: str) -> str:
        if name == "delays remove":
            await printed("delays add", "json")
        elif name in ("tokens rotate", "tokens revoke"):
            found["TOKEN"] = json.loads(await printed("tokens create", "json"))["about"]["id"]
        text: str = (await invoke(*name.split(), *CALLS[name](found), "-o", format)).stdout
        return text

    for name in CALLS:
        document = json.loads(await printed(name, "json"))
        of_yaml = yaml.safe_load(await printed(name, "yaml"))
        lines = [json.loads(line) for line in (await printed(name, "jsonl")).splitlines()]
        assert isinstance(of_yaml, type(document)), name
        if isinstance(document, dict):
            assert list(of_yaml) == list(document), name
            rows = [rows for rows in document.values() if isinstance(rows, list)]
            assert lines == [document] or len(lines) in {1, *map(len, rows)}, name
        else:
            assert len(lines) == len(document), name
