"""A secret in every setting of a worker, a client and the command line on a secured Kafka: none is written anywhere."""

from __future__ import annotations

import asyncio
import os
import re
import subprocess
import sys
from collections.abc import Mapping

import aiohttp
import pytest
from support.acls import grant
from support.application import Application
from support.authority import Authority
from support.least_rights import administrator_rights, producer_rights, worker_rights
from support.planted import PLANTED, found_in
from support.secured import SecuredKafka
from support.waiting import eventually_blocking
from support.written import command_lines, files_of, pages_of, topics_of

from light_scheduler.connection import HttpSecurity
from light_scheduler.connection.http_tls import client_context
from light_scheduler.settings import ENVIRONMENT_PREFIX, load_settings

pytestmark = pytest.mark.integration

PROGRAM = [sys.executable, "-c", "from light_scheduler.cli import main; main()"]
READY_S = 120.0
RUN_S = 90.0
CLIENTS = """
import asyncio, faulthandler, logging
from light_scheduler import BlockingSchedulerClient, SchedulerClient
from light_scheduler.settings import load_settings

logging.basicConfig(level=logging.DEBUG)
settings = load_settings()

async def use():
    async with SchedulerClient(settings.connection, app_id=settings.app_id) as client:
        print(client, vars(client), await client.schedule("asyncio", topic=TARGET, after="1h"))

asyncio.run(use())
with BlockingSchedulerClient(settings.connection, app_id=settings.app_id) as client:
    print(client, vars(client), client.schedule("blocking", topic=TARGET, after="1h"))
    faulthandler.dump_traceback()
    raise ValueError(settings, settings.connection, settings.security, client)
"""
"""What users write, with all that they might print; it ends with a traceback."""


def planted(secured: SecuredKafka, mechanism: str) -> dict[str, str]:
    """Return settings with the secrets of Kafka that go together: a login, or a login and a key."""
    return secured.settings(mechanism) if mechanism == "OAUTHBEARER" else secured.settings_with_both(mechanism)


def of_http(authority: Authority) -> dict[str, str]:
    """Return settings with all other secrets: of HTTPS, a schema registry, and a token."""
    pair = authority.sign("web", password=PLANTED["web_ssl_key_password"])
    return {
        "web_ssl_certificate": str(pair.certificate),
        "web_ssl_key": str(pair.key),
        "web_ssl_key_password": PLANTED["web_ssl_key_password"],
        "web_ssl_ca": str(authority.path),
        "schema_registry": "http://127.0.0.1:1",
        "schema_registry_username": "scheduler",
        "schema_registry_password": PLANTED["schema_registry_password"],
        "token": PLANTED["token"],
    }


def environment_of(options: Mapping[str, str]) -> dict[str, str]:
    own = {name: value for name, value in os.environ.items() if not name.startswith(ENVIRONMENT_PREFIX)}
    return own | {ENVIRONMENT_PREFIX + name.upper(): value for name, value in options.items()}


def told(command: list[str], environment: dict[str, str]) -> tuple[int, bytes]:
    """Run something; return its exit code, and all that it says."""
    ran = subprocess.run(command, check=False, env=environment, capture_output=True, timeout=RUN_S)
    return ran.returncode, ran.stdout + ran.stderr


def command_lines_beside(command: list[str], environment: dict[str, str]) -> bytes:
    """Return how every process of the machine was called while a command runs."""
    running = subprocess.Popen(command, env=environment, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    try:
        own = re.compile(rb"^ *%d " % running.pid, re.MULTILINE)
        eventually_blocking(lambda: own.search(command_lines()), what="its command line")
        return command_lines()
    finally:
        running.terminate()
        running.wait(RUN_S)


def lines_of(target: str) -> list[tuple[list[str], int]]:
    """Return command lines with their exit codes: what succeeds, what is refused, and what shows settings."""
    send = ("--after", "1h", "--target-topic", target)
    return [
        (["schedule", "--id", "line", *send, "-v"], 0),
        (["schedule", "--id", "line", *send, "--timeout", "1ms"], 1),
        (["get", "line"], 0),
        (["list", "-v"], 0),
        (["cancel", "line", "--key", "line", "-v"], 0),
        (["why", "line"], 0),
        (["dead-letters", "list"], 0),
        (["doctor"], 0),
        (["doctor", "--json"], 0),
        (["doctor", "--job", "audit", "--target", target], 1),  # a worker may not read targets
        (["topics", "check"], 0),
        (["topics", "create"], 0),
        (["tenants", "list", "-v"], 0),
        (["tokens", "list"], 0),
        (["tokens", "create", "ops", "--role", "admin", "--all-tenants"], 0),
        (["schedule", *send, "--broker", "kafka://127.0.0.1:1"], 1),
    ]


@pytest.mark.soak
@pytest.mark.timeout(600)
@pytest.mark.parametrize("mechanism", ["SCRAM-SHA-512", pytest.param("OAUTHBEARER", marks=pytest.mark.every_case)])
async def test_no_secret_is_in_anything_that_worker_clients_and_command_line_write(
    secured: SecuredKafka, application: Application, mechanism: str
) -> None:
    options = {**planted(secured, mechanism), **of_http(secured.authority), "app_id": application.settings.app_id}
    settings = load_settings({}, environment=environment_of(options))
    rights = [
        *worker_rights(settings, [application.target]),
        *producer_rights(settings),
        *administrator_rights(settings),
    ]
    grant(secured.servers, secured.principal(mechanism), rights)
    worker = application.new_worker(**options, log_level="DEBUG")
    worker.start()
    await asyncio.to_thread(worker.wait_ready, READY_S)
    environment = environment_of({**options, "web_port": str(worker.settings.web_port), "log_level": "DEBUG"})
    parts: dict[str, bytes] = {}
    ended: dict[str, int] = {}
    code = CLIENTS.replace("TARGET", repr(application.target))
    ended["clients"], parts["clients"] = await asyncio.to_thread(told, [sys.executable, "-c", code], environment)
    connector = aiohttp.TCPConnector(ssl=client_context(HttpSecurity(web_ssl_ca=secured.authority.path)))
    async with aiohttp.ClientSession(connector=connector) as session:
        parts |= await pages_of(session, worker.url, "default", "asyncio")
    expected = {"clients": 1}  # its traceback ends it
    for number, (words, exit_code) in enumerate(lines_of(application.target)):
        place = f"{number} {' '.join(words)}"
        expected[place] = exit_code
        ended[place], parts[place] = await asyncio.to_thread(told, [*PROGRAM, *words], environment)
    parts["ps"] = await asyncio.to_thread(command_lines_beside, [*PROGRAM, "watch"], environment)
    assert await worker.end() == 0
    parts["log"] = worker.log.read_bytes()
    parts |= files_of(worker.settings.data_dir)
    parts |= await topics_of(application.settings, secured.servers)

    assert ended == expected, {place: parts[place] for place, code in ended.items() if code != expected[place]}
    signs = {
        "log": settings.app_id,
        "clients": "ValueError: ",
        "ps": f"{PROGRAM[-1]} watch",
        "/info": "lanes",
        "/api/v1/tenants/{tenant}/schedules/{id}": application.target,
    }
    for place, sign in signs.items():
        assert found_in(parts[place], {"sign": sign}), f"what is there is found in {place}"
    assert len(parts) > 50
    assert {place: found for place, written in parts.items() if (found := found_in(written, PLANTED))} == {}
