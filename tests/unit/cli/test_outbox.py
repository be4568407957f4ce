"""`light-scheduler outbox` without its database, and in a context."""

from __future__ import annotations

import asyncio
import json
import logging
import os
import signal
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner
from sqlalchemy.exc import OperationalError

from light_scheduler.cli import cli
from light_scheduler.contexts import Contexts, contexts_path, save_contexts
from light_scheduler.errors import ConfigurationError
from light_scheduler.host.ports import free_port
from light_scheduler.outbox import takeover

DATABASE = "LIGHT_SCHEDULER_OUTBOX_DATABASE"
RELAY = ["outbox", "relay"]
IMPORT = ["outbox", "import-ajenda", "--topic", "mails", "--target-topic", "mails"]


@pytest.fixture(autouse=True)
def home(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path))


@pytest.mark.parametrize("command", [RELAY, [*RELAY, "--drain"], IMPORT, [*IMPORT, "--dry-run"]])
def test_a_database_that_cannot_be_reached_is_told_in_one_line(
    command: list[str], caplog: pytest.LogCaptureFixture
) -> None:
    url = f"postgresql+psycopg://app:secret@127.0.0.1:{free_port()}/shop"
    with caplog.at_level(logging.WARNING):
        ran = CliRunner(env={DATABASE: url}).invoke(cli, command)
    assert ran.exit_code == 1
    (line,) = ran.stderr.splitlines()
    assert line.startswith("Error: the database failed: ")
    assert "127.0.0.1" in line
    assert "secret" not in line
    assert caplog.messages == []


@pytest.mark.parametrize("command", [RELAY, IMPORT], ids=["relay", "import-ajenda"])
@pytest.mark.parametrize(
    "url",
    [
        "postgresql+psycopg://app:planted@db/shop",
        "postgresql://app:pl/anted@db/shop",
        "postgresql://:planted@db",
        "postgresql://db/shop?user=app&password=planted",
        "postgresql://app@db/shop?sslpassword=planted",
    ],
)
def test_a_password_that_everybody_could_read_in_ps_is_refused_with_a_way_out(command: list[str], url: str) -> None:
    ran = CliRunner().invoke(cli, [*command, "--database", url])
    assert ran.exit_code == 2
    assert f"set the environment variable {DATABASE} to the URL" in " ".join(ran.stderr.split())
    assert "anted" not in ran.output


@pytest.mark.parametrize(
    "url", ["not a url planted", "postgresql://app:pla@nted@db:x/shop", "planted://app:planted@db/shop"]
)
def test_a_database_that_is_no_url_is_refused_without_its_password(url: str) -> None:
    ran = CliRunner(env={DATABASE: url}).invoke(cli, RELAY)
    assert isinstance(ran.exception, ConfigurationError)
    assert ran.exception.setting == "database"
    assert ":planted" not in str(ran.exception)
    assert "nted@" not in str(ran.exception)


@pytest.mark.parametrize("options", [["--target-topic", "two words"], ["--tenant", "a/b"]], ids=["topic", "tenant"])
def test_what_no_schedule_can_have_is_refused_before_any_row_is_read(options: list[str]) -> None:
    database = f"postgresql+psycopg://app@127.0.0.1:{free_port()}/shop"
    ran = CliRunner().invoke(cli, [*IMPORT, *options, "--database", database])
    assert isinstance(ran.exception, ConfigurationError)
    assert ran.exception.setting == options[0].removeprefix("--").replace("-", "_")


@pytest.mark.parametrize(("options", "tenant"), [([], "shop"), (["--tenant", "other"], "other")])
def test_appointments_become_schedules_of_the_tenant_of_the_context(
    monkeypatch: pytest.MonkeyPatch, options: list[str], tenant: str
) -> None:
    save_contexts(contexts_path(), Contexts({"here": {"tenant": "shop"}}, "here"))
    made: dict[str, Any] = {}

    class Takeover:
        def __init__(self, *_: Any, **options: Any) -> None:
            made.update(options)

        async def preview(self) -> takeover.TakenOver:
            return takeover.TakenOver()

    monkeypatch.setattr("light_scheduler.outbox.AjendaTakeover", Takeover, raising=False)
    ran = CliRunner().invoke(cli, [*IMPORT, "--dry-run", *options, "--database", "postgresql+psycopg://app@db/shop"])
    assert (ran.exit_code, made["tenant"]) == (0, tenant)


@pytest.mark.parametrize(("option", "level"), [([], logging.INFO), (["-q"], logging.ERROR)], ids=["", "quiet"])
def test_a_quiet_relay_logs_errors_only(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, option: list[str], level: int
) -> None:
    configured: list[dict[str, Any]] = []
    monkeypatch.setattr(logging, "basicConfig", lambda **options: configured.append(options))
    CliRunner().invoke(cli, [*RELAY, *option, "--drain", "--database", f"sqlite:///{tmp_path}/none.db"])
    assert [logging._checkLevel(each["level"]) for each in configured] == [level]  # type: ignore[attr-defined]


class Relay:
    """Drains as it is told to: what it has sent, refused and found in the table, and its failure."""

    result: tuple[int, int, int | None, Exception | None]

    def __init__(self, *_: Any) -> None:
        self.sent = self.refused = 0
        self.refused_rows: int | None = None

    async def drain(self) -> int:
        self.sent, self.refused, self.refused_rows, failure = self.result
        if failure is not None:
            raise failure
        return self.sent


@pytest.fixture
def relay(monkeypatch: pytest.MonkeyPatch) -> type[Relay]:
    monkeypatch.setattr("light_scheduler.outbox.OutboxRelay", Relay, raising=False)
    return Relay


def _waiting(rows: int, table: str = "light_scheduler_outbox") -> str:
    return f"{rows} refused rows wait for you in table {table}, WHERE refused IS NOT NULL\n" if rows else ""


@pytest.mark.parametrize(
    ("refused", "rows", "code", "table", "schema"),
    [
        (0, 0, 0, "light_scheduler_outbox", []),
        (0, 5, 0, "light_scheduler_outbox", []),
        (2, 5, 1, "light_scheduler_outbox", []),
        (1, 1, 1, "shop.mails", ["shop"]),
    ],
)
@pytest.mark.parametrize("option", [[], ["-q"], ["--json"]], ids=["", "quiet", "json"])
def test_a_drain_says_how_many_commands_were_refused_and_where_they_are(
    refused: int, rows: int, code: int, table: str, schema: list[str], option: list[str], relay: type[Relay]
) -> None:
    relay.result = 3, refused, rows, None
    names = ["--schema", *schema, "--name", "mails"] if schema else []
    ran = CliRunner().invoke(cli, [*RELAY, "--drain", *names, *option, "--database", "sqlite://"])
    assert ran.exit_code == code
    if option == ["--json"]:
        assert json.loads(ran.stdout) == {"sent": 3, "refused": refused, "refused_rows": rows}
    else:
        sent = "3 commands sent" + (f", {refused} refused" if refused else "")
        assert ran.stdout == f"{sent}\n{_waiting(rows, table)}"
    said = f"Error: {refused} commands were refused. They stay in table {table}: their rows are among those WHERE "
    assert ran.stderr.startswith(said) if refused else ran.stderr == ""


@pytest.mark.parametrize(
    ("sent", "refused", "rows", "text"),
    [
        (3, 1, 2, f"3 commands sent, 1 refused\n{_waiting(2)}"),
        (0, 0, 0, "0 commands sent\n"),
        (3, 1, None, f"3 commands sent, 1 refused\n{_waiting(1)}"),
        (0, 0, None, ""),
    ],
    ids=["a shard", "all shards", "the database meanwhile", "the database at the start"],
)
def test_a_drain_that_fails_says_first_what_it_has_done(
    sent: int, refused: int, rows: int | None, text: str, relay: type[Relay]
) -> None:
    relay.result = sent, refused, rows, OperationalError("SELECT 1", None, Exception("gone"))
    ran = CliRunner().invoke(cli, [*RELAY, "--drain", "--database", "sqlite://"])
    assert (ran.exit_code, ran.stdout) == (1, text)
    assert ran.stderr.startswith("Error: the database failed: gone")
    ran = CliRunner().invoke(cli, [*RELAY, "--drain", "--json", "--database", "sqlite://"])
    assert ran.exit_code == 1
    assert not text or json.loads(ran.stdout) == {"sent": sent, "refused": refused, "refused_rows": rows}


@pytest.mark.parametrize("name", ["mysql", "mariadb", "oracle"])
def test_another_database_is_refused_before_its_driver_is_missed(name: str) -> None:
    ran = CliRunner().invoke(cli, [*RELAY, "--database", f"{name}://app@db/shop"])
    assert isinstance(ran.exception, ConfigurationError)
    assert str(ran.exception) == (
        f"setting database: {name} is not supported: the outbox works in PostgreSQL and SQLite. Use one of them"
    )


def test_a_second_signal_does_not_wait_for_kafka(monkeypatch: pytest.MonkeyPatch) -> None:
    class Takeover:
        is_stopping = False

        def __init__(self, *_: Any, **__: Any) -> None:
            pass

        def stop(self) -> None:
            self.is_stopping = True
            os.kill(os.getpid(), signal.SIGINT)

        async def run(self, *_: Any, **__: Any) -> takeover.TakenOver:
            os.kill(os.getpid(), signal.SIGTERM)
            async with asyncio.timeout(30):
                await asyncio.Event().wait()
            return takeover.TakenOver()

    monkeypatch.setattr("light_scheduler.outbox.AjendaTakeover", Takeover, raising=False)
    ran = CliRunner().invoke(cli, [*IMPORT, "--database", "postgresql+psycopg://app@db/shop"])
    assert (ran.exit_code, ran.stdout) == (1, "")
    told, error = ran.stderr.splitlines()
    assert told.startswith("Stopping once the commands")
    assert error.startswith("Error: stopped before the commands")
