"""Every snippet of the documents, page by page and in the page's order, against workers on the run's broker.

Not run here: commands that go on until they are stopped, `bench` (test_bench), docs/pipeline.md (tests/pipeline) and
rights (test_rights_in_docs). What needs curl, jq, kcat, Java or Go is run where they are installed. Which test takes
which blocks is in support.documented.
"""

from __future__ import annotations

import asyncio
import json
import os
import re
import shutil
import subprocess
import uuid
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import asynccontextmanager
from functools import partial
from pathlib import Path
from typing import Any

import aiohttp
import pytest
from aiokafka import AIOKafkaConsumer, AIOKafkaProducer
from click.testing import CliRunner
from support.application import Application
from support.authority import Authority
from support.documented import PYTHON_PAGES, SHELL_PAGES, texts
from support.foreign import etf1_headers
from support.snippets import Shell, comparable, lines_of, needs, run_python, session, snippets, unlike
from support.waiting import eventually

from light_scheduler.agents.startup import refuse_open_door
from light_scheduler.cli import cli
from light_scheduler.client import SchedulerClient, parse_firing
from light_scheduler.clock import SystemClock
from light_scheduler.errors import ConfigurationError
from light_scheduler.host.jars import kafka_jars
from light_scheduler.model import Firing
from light_scheduler.settings import ENVIRONMENT_PREFIX
from light_scheduler.testing import Kafka

pytestmark = pytest.mark.integration

ROOT = Path(__file__).resolve().parents[2]
EXAMPLES = ROOT / "examples" / "clients"

ELSEWHERE = tuple(f"light-scheduler {name}" for name in ("up", "broker", "worker", "bench", "pipeline"))
OF_THE_MACHINE = ("pip ", "python3 ", "python ", ". ", "export ", "kafka-acls.sh ")
NEEDS_A_DATABASE = ("light-scheduler outbox ",)
MADE_UP = (
    "light-scheduler complete ",
    "light-scheduler extend ",
    "light-scheduler dead-letters show ",
    "light-scheduler dead-letters redrive ",
    "curl -X POST $S/again/complete",
    "curl -X POST $S/again/extend",
    "curl -X POST 'http://127.0.0.1:6066/api/v1/dead-letters/",
)
"""Their firing is one that nobody has delivered, and their dead letter is none."""
REFUSES_SOME = ("light-scheduler dry-run ",)
FIRST_TOKEN = ("light-scheduler tokens create ops ",)
"""Run by the test of docs/access.md: with a token, the workers of all pages would ask for one."""
EMPTY_HERE = {
    "curl 'http://127.0.0.1:6066/api/v1/changes?tenant=shop&limit=20'": ".changes[]",
    "curl 'http://127.0.0.1:6066/api/v1/dead-letters?cause=refused&limit=10'": ".dead_letters[]",
    "curl -s http://127.0.0.1:6066/info | jq .targets": "[]",
}
"""Lists of which nothing may be printed: there is no change to the tenant, every target can be written to, and
dead letters are those of the commands of pages before. tests/unit/documented/test_output.py checks their items."""


@pytest.fixture(scope="module")
def served(kafka: Kafka, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Application]:
    """One application with one worker, for all pages."""
    application = asyncio.run(Application.create(kafka.bootstrap_servers, tmp_path_factory.mktemp("documented")))
    asyncio.run(application.start_worker())
    yield application
    application.close()


def placed_in(served: Application) -> Callable[[str], str]:
    """Put in what stands here for the addresses and topics of the documents, and wait for less long."""
    worker = served.workers[0].url

    def place(text: str) -> str:
        app_id = f'app_id="{served.settings.app_id}"'
        text = re.sub(r"SchedulerClient\((.*)\) as scheduler", rf"SchedulerClient(\1, {app_id}) as scheduler", text)
        text = text.replace('app_id="light-scheduler"', app_id)
        text = text.replace("127.0.0.1:9092", served.bootstrap_servers)
        text = text.replace("http://127.0.0.1:6066", worker).replace("http://node-1:6066", worker)
        text = re.sub(r"\blight-scheduler-(commands|dead-letters|history)\b", rf"{served.settings.app_id}-\1", text)
        text = re.sub(r"\breminders\b", served.target, text)
        text = re.sub(r"/run/secrets/|/etc/kafka/", "", text)
        return re.sub(r"--after [123]0s", "--after 1s", text)

    return place


def give_settings(served: Application, folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Have the command line find an application by the variables of its settings, and files in an empty folder."""
    port = served.workers[0].url.rpartition(":")[2]
    given = {
        "APP_ID": served.settings.app_id,
        "BROKER": served.settings.broker,
        "WEB_PORT": port,
        "DATA_DIR": str(folder),
    }
    for name, value in given.items():
        monkeypatch.setenv(ENVIRONMENT_PREFIX + name, value)
    monkeypatch.setenv("LOGNAME", "ops")
    monkeypatch.setenv("XDG_CONFIG_HOME", str(folder / "contexts"))
    monkeypatch.chdir(folder)


@pytest.fixture
def placed(served: Application) -> Callable[[str], str]:
    return placed_in(served)


@pytest.fixture
def shell(served: Application, placed: Callable[[str], str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Shell:
    """A shell in a folder of its own, with the settings of the application and none of its schedules."""
    give_settings(served, tmp_path, monkeypatch)
    (tmp_path / "body.json").write_text("{}")
    (tmp_path / "commands.jsonl").write_text(
        next(snippet.text for snippet in snippets(ROOT / "docs" / "command-line.md") if snippet.language == "jsonl")
    )
    (tmp_path / "schedules.jsonl").write_text(
        json.dumps({"id": "of-a-file", "trigger": {"after": "1h"}, "target": {"topic": served.target}})
    )
    table = next(snippet.text for snippet in snippets(ROOT / "docs" / "command-line.md") if snippet.language == "csv")
    (tmp_path / "schedules.csv").write_text(table.replace("reminders", served.target))
    (tmp_path / "kafka-password").write_text("secret")
    Authority(tmp_path, "ca")
    CliRunner().invoke(cli, ["cancel", "--all", "--yes"], catch_exceptions=False)
    return Shell(placed, dict(os.environ))


@pytest.mark.parametrize("page", SHELL_PAGES)
def test_every_command_of_a_page_runs_and_prints_what_is_shown(page: str, shell: Shell) -> None:
    ran = 0
    for snippet in snippets(ROOT / page):
        if snippet.language == "console":
            for command, error in session(snippet.text):
                if not command.startswith((*ELSEWHERE, *NEEDS_A_DATABASE)):
                    assert error in shell.run(command)[1], command
        if snippet.language == "python" and "asyncio.run(" in snippet.text:
            asyncio.run(run_python(shell.placed(snippet.text), {}))
        if snippet.language != "sh" or needs(snippet.text):
            continue
        text = re.sub(r"^light-scheduler watch\n", "", snippet.text, flags=re.MULTILINE)
        printed = shell.run_all(text, skip=(*ELSEWHERE, *OF_THE_MACHINE, *FIRST_TOKEN), fails=(*MADE_UP, *REFUSES_SOME))
        ran += printed is not None
        if snippet.shown is not None and printed is not None:
            assert comparable(printed) == comparable(shell.placed(snippet.shown)), snippet.text
        if snippet.answer is not None and printed is not None:
            assert set(unlike(snippet.answer, printed)) <= {EMPTY_HERE.get(snippet.text.strip())}, printed
    assert ran > 0


@pytest.fixture
async def of_its_own(kafka: Kafka, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[Application]:
    """An application with one worker, for a page that would change all others."""
    id = f"documented-{uuid.uuid4().hex[:8]}"
    topics = f"{id}-commands,{id}-etf1:etf1"
    application = await Application.create(kafka.bootstrap_servers, tmp_path, app_id=id, commands_topics=topics)
    await application.start_worker()
    give_settings(application, tmp_path, monkeypatch)
    yield application
    application.close()


async def test_the_page_on_access_makes_uses_and_ends_a_token(
    of_its_own: Application, monkeypatch: pytest.MonkeyPatch
) -> None:
    page = ROOT / "docs" / "access.md"
    (refusal,) = texts("docs/access.md")
    with pytest.raises(ConfigurationError) as refused:
        await refuse_open_door(of_its_own.settings, "node-1", SystemClock())
    assert refusal == f"Error: {refused.value}\n"

    place, token = placed_in(of_its_own), ""
    for snippet in snippets(page):
        for line in lines_of(snippet.text) if snippet.language == "sh" else ():
            if line.startswith("export "):
                assert token
                monkeypatch.setenv("LIGHT_SCHEDULER_TOKEN", token)
                await eventually(partial(asks_for_a_token, of_its_own), what="a worker that asks for a token")
            else:
                command = line.replace("1f0c29ab34de", token[4:16])
                code, printed = await asyncio.to_thread(Shell(place, dict(os.environ)).run, command)
                assert code == 0, f"{line}\n{printed}"
                token = token or printed.strip()
                if line.startswith("light-scheduler tokens revoke"):  # an administrator goes on reading
                    create = "light-scheduler tokens create auditor --role admin --all-tenants"
                    code, printed = await asyncio.to_thread(Shell(place, dict(os.environ)).run, create)
                    assert code == 0, printed
                    monkeypatch.setenv("LIGHT_SCHEDULER_TOKEN", printed.strip())
                    accepts = partial(accepts_token, of_its_own, printed.strip())
                    await eventually(accepts, what="a worker that accepts the new token")
        if snippet.shown is not None:
            assert comparable(token) == comparable(snippet.shown)
    listed = Shell(place, dict(os.environ)).run
    code, printed = await asyncio.to_thread(listed, "light-scheduler tokens list --json")
    states = {each["name"]: each["state"] for each in json.loads(printed)["tokens"]}
    assert (code, states) == (0, {"ops": "revoked", "shop": "valid", "prometheus": "valid", "auditor": "valid"})


async def asks_for_a_token(application: Application) -> bool:
    return await status_of_info(application, {}) == 401


async def accepts_token(application: Application, token: str) -> bool:
    return await status_of_info(application, {"Authorization": f"Bearer {token}"}) == 200


async def status_of_info(application: Application, headers: dict[str, str]) -> int:
    url = f"{application.workers[0].url}/info"
    async with aiohttp.ClientSession(headers=headers) as session, session.get(url) as response:
        return response.status


async def test_the_search_of_the_page_on_dialects_finds_what_is_shown(of_its_own: Application) -> None:
    [(command, answer)] = [
        (snippet.text, snippet.answer)
        for snippet in snippets(ROOT / "docs" / "dialects.md")
        if snippet.language == "sh" and snippet.text.startswith("curl") and "/api/scheduler/" in snippet.text
    ]
    assert answer is not None
    (_, etf1) = (source.name for source in of_its_own.settings.inputs)
    async with AIOKafkaProducer(bootstrap_servers=of_its_own.bootstrap_servers) as producer:
        headers = etf1_headers(1_893_456_000_000, of_its_own.target)
        await producer.send_and_wait(etf1, b"hello", b"order-1", headers=headers)
    shell = Shell(placed_in(of_its_own), dict(os.environ))
    line = command.strip().replace("/light-scheduler/", f"/{of_its_own.settings.app_id}/")

    async def is_found() -> bool:
        code, printed = await asyncio.to_thread(shell.run, line)
        return code == 0 and json.loads(printed)["found"] == 1 and unlike(answer, printed) == []

    await eventually(is_found, every=0.2, what="what an etf1 producer has scheduled")


@asynccontextmanager
async def client_with_firings(served: Application) -> AsyncIterator[dict[str, Any]]:
    """Yield the names that fragments of programs use: an open client, and a firing that waits for its completion."""
    async with served.client() as scheduler:
        await scheduler.schedule("order-again", topic=served.target, every="200ms")
        await scheduler.schedule("acknowledged", topic=served.target, after="0ms", ack_timeout="1m")
        yield {"scheduler": scheduler, "SchedulerClient": SchedulerClient, "firing": await delivered(served)}


async def delivered(served: Application) -> Firing:
    async with (
        asyncio.timeout(30),
        AIOKafkaConsumer(
            served.target,
            bootstrap_servers=served.bootstrap_servers,
            isolation_level="read_committed",
            auto_offset_reset="earliest",
        ) as consumer,
    ):
        async for record in consumer:
            firing = parse_firing(record)
            if firing.id == "acknowledged":
                return firing
    raise AssertionError("unreachable: the consumer has no end")


@pytest.mark.usefixtures("shell")
@pytest.mark.parametrize("page", PYTHON_PAGES)
def test_every_python_snippet_of_a_page_runs(
    page: str, served: Application, placed: Callable[[str], str], capsys: pytest.CaptureFixture[str]
) -> None:
    code = [placed(snippet.text) for snippet in snippets(ROOT / page) if snippet.language == "python"]
    assert code

    async def run() -> None:
        async with asyncio.timeout(60), client_with_firings(served) as names:
            for snippet in code:
                await run_python(snippet, names)

    asyncio.run(run())
    printed = capsys.readouterr().out
    if page == "docs/client.md":
        (shown,) = texts(page)
        assert placed(shown) in printed


@pytest.mark.usefixtures("shell")
def test_the_python_examples_run(
    served: Application,
    placed: Callable[[str], str],
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.setenv("KAFKA", served.bootstrap_servers)

    def run(name: str, *arguments: str) -> str:
        monkeypatch.setattr("sys.argv", [name, *arguments])
        code = placed((EXAMPLES / name).read_text(encoding="utf-8"))
        asyncio.run(run_python(code, {"__name__": "__main__"}))
        return capsys.readouterr().out

    assert run("make_topic.py", served.target) == f"{served.target} exists\n"
    outcomes = [line.split()[0] for line in run("schedule_and_cancel.py").splitlines()]
    assert outcomes == ["scheduled", "updated", "cancelled", "not_found"]
    assert run("series.py").splitlines()[-3:] == ["triggered", "completed", "cancelled"]
    assert run("native_headers.py") == "left unsent: 0\n"
    assert "ms after due" in run("read_firings.py", served.target, "1")


JAVA = """
import static java.nio.charset.StandardCharsets.UTF_8;
import java.util.Map;
import org.apache.kafka.clients.producer.KafkaProducer;
import org.apache.kafka.clients.producer.ProducerRecord;
import org.apache.kafka.common.serialization.StringSerializer;

public class Documented {
    public static void main(String[] args) throws Exception {
        Map<String, Object> settings = Map.of("bootstrap.servers", "127.0.0.1:9092");
        try (var producer = new KafkaProducer<>(settings, new StringSerializer(), new StringSerializer())) {
%s        }
    }
}
"""
GO = """
package main

import (
	"context"

	"github.com/twmb/franz-go/pkg/kgo"
)

func send(ctx context.Context, client *kgo.Client) error {
%s	return err
}
"""


@pytest.mark.skipif(shutil.which("javac") is None, reason="needs a Java compiler")
@pytest.mark.soak
async def test_the_java_snippet_schedules_and_cancels(served: Application, shell: Shell, tmp_path: Path) -> None:
    (snippet,) = [each.text for each in snippets(ROOT / "docs" / "native.md") if each.language == "java"]
    program = tmp_path / "Documented.java"
    program.write_text(shell.placed(JAVA % snippet).replace("order-1", "order-java"), encoding="utf-8")
    jars = os.pathsep.join(map(str, kafka_jars()))
    java = await asyncio.create_subprocess_exec("java", "-cp", jars, program, stderr=asyncio.subprocess.PIPE)
    _, complaints = await asyncio.wait_for(java.communicate(), 60)
    assert java.returncode == 0, complaints.decode()

    async def is_cancelled() -> bool:
        events = [event.event for event in await served.history() if event.id == "order-java"]
        return events == ["scheduled", "cancelled"]

    await eventually(is_cancelled, within=30, every=0.1)


@pytest.mark.skipif(shutil.which("gofmt") is None, reason="needs Go")
def test_the_go_snippet_is_go(tmp_path: Path) -> None:
    (snippet,) = [each.text for each in snippets(ROOT / "docs" / "native.md") if each.language == "go"]
    program = tmp_path / "documented.go"
    program.write_text(GO % snippet, encoding="utf-8")
    ran = subprocess.run(["gofmt", "-e", program], capture_output=True, text=True, check=False)
    assert ran.returncode == 0, ran.stderr
