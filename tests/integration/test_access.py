"""Access on real workers: a node of two processes behind mutual TLS, that every test here shares."""

from __future__ import annotations

import asyncio
import json
import socket
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from typing import Any
from urllib.parse import urlsplit

import aiohttp
import pytest
import requests
from openapi_spec_validator import validate
from support.api_cases import cases, check_answer, operations
from support.api_workflows import AREAS, EXPECTED, Topics, Walk
from support.application import READY_TIMEOUT_S, Application, WorkerProcess, port_with_room
from support.authority import Authority
from support.cases import by_day
from support.planted import OF_HTTP, found_in
from support.reading import header, read_until
from support.waiting import eventually
from support.written import command_lines, files_of, pages_of, topics_of

from light_scheduler.access.accepted_tokens import access_book
from light_scheduler.agents.startup import refuse_open_door
from light_scheduler.clock import SystemClock
from light_scheduler.connection import HttpSecurity
from light_scheduler.connection.http_tls import client_context
from light_scheduler.devkit.worker_process import worker_environment
from light_scheduler.kafka.compacted import stored_entries
from light_scheduler.model import Outcome
from light_scheduler.settings import HTTP_SECURITY_SETTINGS, Settings
from light_scheduler.testing import Kafka
from light_scheduler.wire import partition_for

pytestmark = pytest.mark.integration

PROGRAM = [sys.executable, "-c", "from light_scheduler.cli import main; main()"]
LIST = "/api/v1/tenants/shop/schedules"
TOKENS = "/api/v1/tokens"
LATE_MS = 5_000
"""What counts as late here: other tests may take most of the machine."""

IN_FORCE_S = 2.0
"""How soon a change of tokens is in force on every worker."""


@dataclass
class SecuredNode:
    """A node of two processes that want a client certificate, and an admin's token. `urls` are of the processes."""

    application: Application
    worker: WorkerProcess
    authority: Authority
    client: HttpSecurity
    ops: str
    urls: list[str]

    def session(self, token: str | None = None) -> aiohttp.ClientSession:
        """Return a client with a certificate, and with a token if one is given."""
        headers = {} if token is None else {"Authorization": f"Bearer {token}"}
        connector = aiohttp.TCPConnector(ssl=client_context(self.client))
        return aiohttp.ClientSession(connector=connector, headers=headers)

    def run(self, *words: str, token: str | None = None) -> subprocess.CompletedProcess[str]:
        """Run the command line as a user with a certificate."""
        own = {name: getattr(self.client, name) for name in HTTP_SECURITY_SETTINGS}
        return run(replace(self.worker.settings, **own), *words, LIGHT_SCHEDULER_TOKEN=token or "")


def run(settings: Settings, *words: str, **variables: str) -> subprocess.CompletedProcess[str]:
    """Run the command line with settings in its environment."""
    environment = {**worker_environment(settings), **variables}
    return subprocess.run([*PROGRAM, *words], check=False, env=environment, capture_output=True, text=True, timeout=60)


def made(application: Application, *words: str) -> Any:
    answer = run(application.settings, "tokens", *words, "--json")
    assert answer.returncode == 0, answer.stderr
    return json.loads(answer.stdout)


@pytest.fixture(scope="module")
def node(kafka: Kafka, tmp_path_factory: pytest.TempPathFactory) -> Iterator[SecuredNode]:
    folder = tmp_path_factory.mktemp("access")
    authority = Authority(folder)
    pair = authority.sign("node", password=OF_HTTP["web_ssl_key_password"])
    application = asyncio.run(Application.create(kafka.bootstrap_servers, folder))
    ops = made(application, "create", "ops", "--role", "admin", "--all-tenants")["token"]
    port = port_with_room(2)
    worker = application.new_worker(
        processes="2",
        web_port=str(port),
        log_level="DEBUG",
        web_ssl_certificate=str(pair.certificate),
        web_ssl_key=str(pair.key),
        schema_registry="http://127.0.0.1:1",
        schema_registry_username="scheduler",
        **OF_HTTP,
        web_ssl_ca=str(authority.path),
        web_ssl_client_ca=str(authority.path),
        web_ssl_client_auth="required",
    )
    client = HttpSecurity(web_ssl_ca=authority.path, web_ssl_certificate=authority.sign("client").together)
    try:
        worker.start()
        worker.wait_ready(READY_TIMEOUT_S)
        urls = [f"https://127.0.0.1:{port + 1 + number}" for number in range(2)]
        yield SecuredNode(application, worker, authority, client, ops, urls)
    finally:
        application.close()


async def test_a_worker_that_others_can_reach_starts_only_with_a_token_or_when_told_so(
    application: Application,
) -> None:
    name = socket.gethostname()
    refused = application.new_worker(web_host=name)
    refused.start()
    assert await refused.ended() != 0
    log = refused.log.read_text()
    assert f"other machines can reach {name}, and there is no token yet" in log
    for way in ("light-scheduler tokens create", "oidc_issuer", "web_ssl_client_auth", "insecure"):
        assert way in log
    with_certificates = replace(refused.settings, web_ssl_client_auth="required")
    for settings in (replace(refused.settings, insecure=True), with_certificates):
        await refuse_open_door(settings, name, SystemClock())
    await refuse_open_door(application.settings, "127.0.0.1", SystemClock())
    made(application, "create", "ops", "--role", "admin", "--all-tenants")
    await refuse_open_door(refused.settings, name, SystemClock())


async def status_of(session: aiohttp.ClientSession, url: str, token: str | None) -> int:
    headers = {} if token is None else {"Authorization": f"Bearer {token}"}
    async with session.get(url, headers=headers) as response:
        await response.read()
        return response.status


async def seconds_until(is_so: Callable[[], Any]) -> float:
    """Ask until it is so; return after how many seconds it was asked for the last time when it was not."""
    began, asked = time.monotonic(), [0.0]

    async def ask() -> Any:
        asked.append(time.monotonic() - began)
        return await is_so()

    await eventually(ask, every=0.02)
    return asked[-2]


async def test_a_token_is_in_force_and_ends_on_another_worker_within_two_seconds(node: SecuredNode) -> None:
    here, elsewhere = node.urls
    delays: list[float] = []
    async with node.session() as session:
        headers = {"Authorization": f"Bearer {node.ops}"}
        for _ in range(4):
            body = {"name": "brief", "role": "read", "tenants": ["shop"]}
            async with session.post(here + TOKENS, headers=headers, json=body) as response:
                assert response.status == 201, await response.text()
                made = await response.json()

            async def has(status: int, token: str = made["token"]) -> bool:
                return await status_of(session, elsewhere + LIST, token) == status

            delays.append(await seconds_until(lambda: has(200)))
            async with session.delete(f"{here}{TOKENS}/{made['about']['id']}", headers=headers) as response:
                assert response.status == 200, await response.text()
            delays.append(await seconds_until(lambda: has(401)))
    *_, second_worst, _worst = sorted(delays)
    assert second_worst < IN_FORCE_S, delays  # a busy machine may hold one of them up


async def test_rules_of_a_tenant_are_in_force_on_all_workers_within_two_seconds(node: SecuredNode) -> None:
    """On another worker over HTTP, which refuses what they forbid, and in all partitions, however a command comes."""
    here, elsewhere = node.urls
    rules, schedule = "/api/v1/tenants/ruled", "/api/v1/tenants/ruled/schedules/over-http"
    target, ids = node.application.target, [f"ruled-{number}" for number in range(12)]
    assert {partition_for(id.encode(), node.application.settings.partitions) for id in ids} == {0, 1, 2, 3}
    delays: list[float] = []
    async with node.session(node.ops) as session, node.application.client(tenant="ruled") as client:

        async def over_http(statuses: set[int]) -> bool:
            body = {"trigger": {"after": "1h"}, "target": {"topic": target}}
            async with session.put(elsewhere + schedule, json=body) as response:
                return response.status in statuses

        async def in_lanes(outcomes: set[Outcome]) -> bool:
            calls = (client.schedule(id, topic=target, after="1h", raise_on_refusal=False) for id in ids)
            return {result.outcome for result in await asyncio.gather(*calls)} <= outcomes

        async def is_in_force(statuses: set[int], outcomes: set[Outcome]) -> bool:
            return await over_http(statuses) and await in_lanes(outcomes)

        for changed, statuses, outcomes in (
            ({"targets": ["another"]}, {400}, {Outcome.REJECTED}),
            ({}, {200, 201}, {Outcome.SCHEDULED, Outcome.UPDATED}),
        ) * 3:
            async with session.put(here + rules, json=changed) as response:
                assert response.status in (200, 201), await response.text()
            delays.append(await seconds_until(lambda: is_in_force(statuses, outcomes)))  # noqa: B023 - used at once
    *_, second_worst, _worst = sorted(delays)
    assert second_worst < IN_FORCE_S, delays  # a busy machine may hold one of them up


async def test_the_front_and_the_workers_behind_it_speak_mutual_tls(node: SecuredNode) -> None:
    async with node.session(node.ops) as session:
        for url in (node.worker.url, *node.urls):

            async def is_listed(url: str = url) -> bool:
                async with session.get(url + LIST) as response:  # asks the other process for its partitions
                    if is_to_ask_again(response):
                        return False
                    assert response.status in (200, 201), await response.text()
                    assert "max-age" in response.headers["Strict-Transport-Security"]
                    return True

            await eventually(is_listed, every=0.1, what=f"a list from {url}")

        async def do_all_answer() -> bool:
            async with session.get(node.worker.url + "/info") as response:
                info = await response.json()
            return [process["answers"] for process in info["processes"]] == [True, True]

        await eventually(do_all_answer, every=0.1, what="answers of both processes")
    stranger = client_context(HttpSecurity(web_ssl_ca=node.authority.path))
    async with aiohttp.ClientSession(connector=aiohttp.TCPConnector(ssl=stranger)) as session:
        with pytest.raises(aiohttp.ClientError):
            await session.get(node.worker.url + "/live")


async def test_the_command_line_asks_over_mutual_tls(node: SecuredNode) -> None:
    body = ("--key", "a", "--after", "1h", "--target-topic", node.application.target)
    sent = await asyncio.to_thread(node.run, "schedule", "--tenant", "shop", "--id", "a-1", *body, token=node.ops)
    assert sent.returncode == 0, sent.stderr
    for url in ((), ("--url", node.urls[1])):
        answer = await asyncio.to_thread(node.run, "list", "--tenant", "shop", "--json", *url, token=node.ops)
        assert answer.returncode == 0, answer.stderr
        assert [each["id"] for each in json.loads(answer.stdout)["schedules"]] == ["a-1"]
    plain = node.worker.url.replace("https", "http")
    answer = await asyncio.to_thread(node.run, "list", "--url", plain, token=node.ops)
    assert answer.returncode == 1
    assert "If it speaks TLS, use https://" in answer.stderr


async def test_a_batch_goes_through_mutual_tls_and_keeps_to_the_token(node: SecuredNode) -> None:
    body = {"trigger": {"after": "1h"}, "target": {"topic": node.application.target}, "labels": {"of": "batch"}}
    rows = [json.dumps({**body, "id": f"batch-{number}"}) for number in range(1_000)]
    rows[500] = json.dumps({**body, "tenant": "another"})
    async with node.session(node.ops) as session:
        async with session.post(f"{node.worker.url}{LIST}:batch", data="\n".join(rows)) as response:
            assert response.status == 200, await response.text()
            answers = [json.loads(line) async for line in response.content]
        assert [each["line"] for each in answers] == list(range(1, 1_001))
        others = [each for each in answers if each["status"] != 201]
        assert {each["line"]: each["status"] for each in others} == {501: 400}, others[:2]
        assert await rows_of_list(session, f"{node.worker.url}{LIST}?label=of=batch&limit=1000") == 999


def is_to_ask_again(response: aiohttp.ClientResponse) -> bool:
    """Say whether an answer asks to come back: another process did not answer in time."""
    return response.status == 503 and "Retry-After" in response.headers


async def rows_of_list(session: aiohttp.ClientSession, url: str) -> int:
    """Count the schedules of a list, page by page: one ends early where it takes long to read."""
    rows, cursor = 0, ""
    while True:

        async def answer(url: str = url + cursor) -> Any:
            async with session.get(url) as response:
                if is_to_ask_again(response):
                    return None
                assert response.status == 200, await response.text()
                return await response.json()

        page = await eventually(answer, every=0.1, what="a page of a list")
        rows += len(page["schedules"])
        if page["next_cursor"] is None:
            return rows
        cursor = f"&cursor={page['next_cursor']}"


BOUND_TO_SHOP = ("read", "write", "admin")


@pytest.mark.soak
def test_every_operation_keeps_to_its_document_whoever_asks_and_whatever_is_sent(node: SecuredNode) -> None:
    """Requests are made from the document by schemathesis: some are right, some are wrong."""
    with requests.Session() as session:
        session.trust_env = False  # a bundle of authorities in the environment would come first
        session.verify = str(node.client.web_ssl_ca)
        session.cert = str(node.client.web_ssl_certificate)
        tokens = {role: token_over_http(node, session, role) for role in BOUND_TO_SHOP} | {"nobody": None}

        def send(case: Any, token: str | None) -> Any:
            case.headers = {**case.headers, **({} if token is None else {"Authorization": f"Bearer {token}"})}
            response = case.call(base_url=node.worker.url, session=session, verify=session.verify)
            check_answer(case, response)
            return response

        with_ops = {"Authorization": f"Bearer {node.ops}"}
        document = session.get(f"{node.worker.url}/api/v1/openapi.json", headers=with_ops).json()
        validate(document)
        outcomes: Counter[int] = Counter()
        for operation in operations(document):
            for case in cases(operation, 2, is_valid=True) + cases(operation, 2, is_valid=False):
                answer = send(case, node.ops)
                assert answer.status_code not in (401, 403), case.operation.label
                outcomes[answer.status_code] += 1
            for token in tokens.values():
                for case in cases(operation, 1, is_valid=True):
                    case.path_parameters |= {"tenant": "shop"} if "tenant" in case.path_parameters else {}
                    outcomes[send(case, token).status_code] += 1
    assert {200, 400, 401, 403, 404} <= outcomes.keys()


@pytest.mark.timeout(900)
@pytest.mark.parametrize("area", by_day(2, AREAS))
@pytest.mark.soak
def test_sequences_of_requests_that_follow_links_keep_to_the_document(
    node: SecuredNode, area: str, request: pytest.FixtureRequest
) -> None:
    """As above, with all checks of schemathesis, on what earlier requests have made, changed or removed."""
    is_long = request.config.getoption("--soak")
    target = node.application.target
    transport: dict[str, Any] = {"verify": str(node.client.web_ssl_ca), "cert": str(node.client.web_ssl_certificate)}
    topics = Topics(node.application.settings.inputs[0].name, f"{target}-source", target)
    walk = Walk(node.worker.url, node.ops, topics, transport)
    document = requests.get(f"{walk.url}/api/v1/openapi.json", headers=walk.credentials, timeout=60, **transport).json()

    def put_rule() -> None:
        rule = {"source": topics.source, "delay": "1h", "target": target}
        place = f"{walk.url}/api/v1/delays/first"
        answer = requests.put(place, headers=walk.credentials, json=rule, timeout=60, **transport)
        assert answer.ok, answer.text

    if area == "delays":
        walk.prepare = put_rule
    walk.follow(document, area, sequences=max(AREAS[area], 8) if is_long else AREAS[area], steps=20 if is_long else 8)
    assert len(walk.succeeded) >= 3, walk.steps
    assert walk.succeeded >= EXPECTED[area], walk.steps


def token_over_http(node: SecuredNode, session: requests.Session, role: str) -> str:
    """Return a token for the tenant shop, which the process that makes it accepts at once."""
    body = {"name": role, "role": role, "tenants": ["shop"]}
    headers = {"Authorization": f"Bearer {node.ops}"}
    answer = session.post(node.worker.url + TOKENS, json=body, headers=headers)
    assert answer.status_code == 201, answer.text
    return str(answer.json()["token"])


async def serial_number(node: SecuredNode) -> int:
    """Return the number of the certificate that the node shows to a new connection."""
    url = urlsplit(node.worker.url)
    _, writer = await asyncio.open_connection(url.hostname, url.port, ssl=client_context(node.client))
    try:
        return int(writer.get_extra_info("peercert")["serialNumber"], 16)
    finally:
        writer.close()
        await writer.wait_closed()


@pytest.mark.soak
async def test_certificates_are_renewed_while_requests_and_firings_go_on_and_none_fails_or_is_late(
    node: SecuredNode,
) -> None:
    count, step_ms, renewals = 500, 20, 5
    shown, answers, asking = set[int](), Counter[int](), True

    async def ask() -> None:
        while asking:  # each time over a connection of its own
            shown.add(await serial_number(node))
            async with node.session(node.ops) as session, session.get(node.worker.url + LIST) as response:
                await response.read()
                answers[response.status] += 1

    async with node.application.client() as client:
        await client.schedule_many(
            {"id": f"renewed-{number}", "topic": node.application.target, "after": 1_000 + number * step_ms}
            for number in range(count)
        )

    async def until_shown(number: int) -> None:
        async def is_shown() -> bool:
            return len(shown) >= number or any(asker.done() for asker in askers)

        await eventually(is_shown)

    askers = [asyncio.create_task(ask()) for _ in range(3)]
    for _ in range(renewals):
        for name, password in (("node", OF_HTTP["web_ssl_key_password"]), ("client", None)):
            node.authority.sign(name, password=password)
        await until_shown(len(shown) + 1)

    def ours(records: list[Any]) -> list[Any]:
        return [record for record in records if (header(record, "schedule-id") or "").startswith("renewed-")]

    records = await read_until(
        node.application.bootstrap_servers, [node.application.target], lambda records: len(ours(records)) >= count
    )
    asking = False
    await asyncio.gather(*askers)
    assert set(answers) == {200}, answers
    assert len(shown) >= renewals
    lateness = [
        int(header(record, "schedule-fired-at") or 0) - int(header(record, "schedule-due") or 0)
        for record in ours(records)
    ]
    assert len(lateness) == count
    assert max(lateness) < LATE_MS


async def test_no_secret_is_in_anything_that_was_written(node: SecuredNode) -> None:
    """The last one here: it looks at what the others have left as well."""
    forged = "lst_1f0c29ab34de_" + "forged-token-" * 3 + "0000"
    secrets = {**OF_HTTP, "ops": node.ops, "forged": forged, "peers": await peer_secret(node)}
    parts = {"ps": await asyncio.to_thread(command_lines)}
    async with node.session(node.ops) as session:
        parts |= await pages_of(session, node.worker.url, "shop", "a-1")
        for form in ({"token": node.ops}, {"token": forged}):
            async with session.post(node.worker.url + "/login", data=form, allow_redirects=False) as response:
                parts[f"login {response.status}"] = await response.read()
    async with node.session(forged) as session, session.get(node.worker.url + LIST) as response:
        parts["refused"] = await response.read()
    for words in (["doctor", "--json"], ["list", "--tenant", "shop"], ["tokens", "list"], ["get", "none"]):
        answer = await asyncio.to_thread(node.run, *words, token=node.ops)
        parts[" ".join(words)] = (answer.stdout + answer.stderr).encode()
    parts |= files_of(node.worker.settings.data_dir)
    parts["log"] = node.worker.log.read_bytes()
    settings = node.application.settings
    parts |= await topics_of(settings, settings.bootstrap_servers)
    assert found_in(parts["log"], {"known": settings.app_id}), "what is there is found"
    assert found_in(parts[f"topic {settings.topics.tenants}"], {"peers": secrets["peers"]})
    parts[f"topic {settings.topics.tenants}"] = b""  # its readers may know what the workers sign with
    assert len(parts) > 40
    assert {place: found for place, written in parts.items() if (found := found_in(written, secrets))} == {}


async def peer_secret(node: SecuredNode) -> str:
    settings = node.application.settings
    entries = await stored_entries(settings.connection, settings.topics.tenants, 10)
    secret = access_book(entries).peer_secret
    assert secret is not None
    return secret.decode()
