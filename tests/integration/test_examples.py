"""The programs of examples/, each run as its docstring says, against a broker and a worker with the default names."""

from __future__ import annotations

import os
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path

import aiohttp
import pytest
from support.home import ROOT, Home, at_home, steps, unhurried
from support.waiting import eventually

from light_scheduler.host.jars import kafka_jars
from light_scheduler.host.ports import free_port

pytestmark = pytest.mark.integration

EXAMPLES = ROOT / "examples"
WITHOUT_SOAK = ("delayed_notification", "suspended_workflow")
CLIENTS = EXAMPLES / "clients"


@pytest.fixture(scope="module")
def home(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Home]:
    with at_home(tmp_path_factory.mktemp("home")) as home:
        yield home


@pytest.mark.parametrize(
    "program",
    [
        pytest.param(program, id=program.stem, marks=[] if program.stem in WITHOUT_SOAK else pytest.mark.soak)
        for program in sorted((EXAMPLES / "patterns").glob("*.py"))
    ],
)
def test_a_pattern_prints_what_its_docstring_shows(home: Home, program: Path, tmp_path: Path) -> None:
    assert home.walk_through(program, tmp_path) > 0


async def schedules_and_cancels(home: Home, command: str, id: str) -> None:
    """Run a producer that schedules `id` and cancels order-1, and wait for both to have happened."""
    async with home.application.client() as scheduler:
        await scheduler.schedule("order-1", topic="reminders", after="1h")
    cancelled = (await home.events_of("order-1")).count("cancelled")
    home.run(command)

    async def is_done() -> bool:
        has_fired = "fired" in await home.events_of(id)
        return has_fired and (await home.events_of("order-1")).count("cancelled") > cancelled

    await eventually(is_done, every=0.2, what=f"{id} fired and order-1 cancelled")


@pytest.mark.soak
@pytest.mark.skipif(shutil.which("javac") is None, reason="needs a Java compiler")
async def test_a_producer_in_java(home: Home) -> None:
    jars = os.pathsep.join(map(str, kafka_jars()))
    await schedules_and_cancels(home, f"java -cp {jars} {CLIENTS / 'NativeHeaders.java'}", "order-java")


@pytest.mark.skipif(shutil.which("go") is None, reason="needs Go")
@pytest.mark.soak
@pytest.mark.every_case
async def test_a_producer_in_go(home: Home) -> None:
    _fetched("Go modules", ["go", "mod", "download"], CLIENTS)
    await schedules_and_cancels(home, f"cd {CLIENTS} && go run native_headers.go", "order-go")


@pytest.mark.skipif(shutil.which("npm") is None, reason="needs Node.js and npm")
@pytest.mark.soak
async def test_a_producer_in_node(home: Home, tmp_path: Path) -> None:
    program = CLIENTS / "native_headers.mjs"
    install = program.read_text(encoding="utf-8").partition(": ")[2].partition(" && ")[0]
    _fetched("kafkajs", [*install.split(), "--no-audit", "--no-fund", "--prefix", "."], tmp_path)
    shutil.copy(program, tmp_path)
    await schedules_and_cancels(home, f"cd {tmp_path} && node native_headers.mjs", "order-node")


def _fetched(what: str, command: list[str], folder: Path) -> None:
    """Download packages, or skip the test where they cannot be had."""
    ran = subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False, timeout=120)
    if ran.returncode != 0:
        pytest.skip(f"{what} cannot be had here: {ran.stderr.strip()[-200:]}")


async def _answers(session: aiohttp.ClientSession, url: str) -> None:
    async def is_there() -> bool:
        try:
            async with session.get(url):
                return True
        except aiohttp.ClientError:
            return False

    await eventually(is_there, every=0.1, what=url)


@pytest.mark.soak
async def test_an_order_and_its_reminder_are_one_transaction_in_fastapi(home: Home, tmp_path: Path) -> None:
    port, log = free_port(), tmp_path / "log"
    program = unhurried(EXAMPLES / "services" / "fastapi_outbox.py", tmp_path)
    command = f"uvicorn --app-dir {tmp_path} --port {port} {program.stem}:app"
    database = f"sqlite+aiosqlite:///{tmp_path}/shop.db"
    with home.running(command, log, DATABASE=database):
        async with aiohttp.ClientSession(f"http://127.0.0.1:{port}") as shop:
            await _answers(shop, "/docs")
            for number in (1, 2):
                async with shop.post("/orders", json={"item": "lamp"}) as response:
                    assert response.status == 201
                    assert await response.json() == {"id": number, "reminder": f"order-{number}"}
            async with shop.delete("/orders/2") as response:
                assert response.status == 204
            async with shop.delete("/orders/3") as response:
                assert response.status == 404

        async def is_reminded() -> bool:
            return "fired" in await home.events_of("order-1") and "cancelled" in await home.events_of("order-2")

        await eventually(is_reminded, every=0.2, what="a reminder, and one that was cancelled")
        assert "fired" not in await home.events_of("order-2")


@pytest.mark.soak
async def test_an_order_and_its_reminder_are_one_transaction_in_django(home: Home, tmp_path: Path) -> None:
    port, log, database = free_port(), tmp_path / "log", str(tmp_path / "shop.db")
    async with aiohttp.ClientSession(f"http://127.0.0.1:{port}") as shop:
        with home.running(f"python examples/services/django_outbox.py 127.0.0.1:{port}", log, DATABASE=database):
            await _answers(shop, "/")
            async with shop.post("/orders?item=lamp") as response:
                assert await response.json() == {"id": 1, "reminder": "order-1"}
    relay = f"light-scheduler outbox relay --drain --name shop_outbox --database sqlite:///{database}"
    assert home.run(relay) == "1 commands sent\n"
    home.run(f"python -c '{ROLLED_BACK}'", DATABASE=database, PYTHONPATH=str(EXAMPLES / "services"))
    assert home.run(relay) == "0 commands sent\n"


ROLLED_BACK = """
from django_outbox import Order, orders, transaction
from django.test import RequestFactory
with transaction.atomic():
    orders(RequestFactory().post("/orders?item=lamp"))
    assert Order.objects.count() == 2
    transaction.set_rollback(True)
assert Order.objects.count() == 1
"""


async def test_a_faststream_application_receives_what_is_scheduled(home: Home, tmp_path: Path) -> None:
    log = tmp_path / "log"
    (*_, (schedule, _)) = steps(EXAMPLES / "services" / "faststream_consumer.py")
    with home.running("python examples/services/faststream_consumer.py", log):
        home.run(schedule.replace("order-1", "order-stream"))
        await eventually(lambda: "mail for order-stream: pay!" in log.read_text(encoding="utf-8"), what="a mail")
