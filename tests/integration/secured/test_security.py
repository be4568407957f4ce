"""A Kafka with TLS, logins and ACLs: each kind of listener, from a schedule to its firing, and what goes wrong."""

from __future__ import annotations

import asyncio
import json
import logging
import os
import shutil
import subprocess
import sys
import time
import uuid
from collections import Counter
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from datetime import timedelta
from itertools import islice
from pathlib import Path

import aiohttp
import pytest
from aiokafka import AIOKafkaConsumer
from aiokafka.client import AIOKafkaClient
from aiokafka.protocol.metadata import MetadataRequest
from sqlalchemy import MetaData, create_engine
from support.acls import grant, revoke
from support.application import Application
from support.cases import by_day
from support.least_rights import (
    administrator_rights,
    consumer_rights,
    file_rights,
    grower_rights,
    producer_rights,
    relay_rights,
    topic_rights,
    worker_rights,
)
from support.reading import header, read_until
from support.rotation import Rotation, rotating
from support.secured import KEY_PASSWORD, KINDS, LOGIN_MS, SECRETS, SecuredKafka
from support.waiting import eventually, eventually_blocking

from light_scheduler.client import BlockingSchedulerClient, SchedulerClient
from light_scheduler.client.reading import Reader
from light_scheduler.connection import Connection, KafkaSecurity
from light_scheduler.connection.diagnosis import fault_of, require_access
from light_scheduler.connection.principal import principal_of
from light_scheduler.errors import BrokerError, BrokerRefused
from light_scheduler.host.ports import free_port
from light_scheduler.kafka.compacted import CompactedTopic
from light_scheduler.kafka.log_reader import LogReader
from light_scheduler.kafka.promptness import ANSWER_S, Promptness
from light_scheduler.kafka.rights import Right
from light_scheduler.kafka.topic_admin import admin_client, create_topic, partition_counts
from light_scheduler.model import EventType, Outcome
from light_scheduler.outbox import Outbox, OutboxRelay, RelayOptions
from light_scheduler.settings import ENVIRONMENT_PREFIX, Settings, load_settings

pytestmark = pytest.mark.integration

LATE_MS = 5_000
"""Where nothing is held up, firings are some ms late; a machine that does much else makes it more."""

MARKS = {
    "SSL": (),
    "SCRAM-SHA-256": (pytest.mark.soak,),
    "OAUTHBEARER": (pytest.mark.soak,),
}
"""Of kinds of connection that are not only tried with `--every-case`."""

PROGRAM = [sys.executable, "-c", "from light_scheduler.cli import main; main()"]


def as_environment(options: dict[str, str]) -> dict[str, str]:
    return {ENVIRONMENT_PREFIX + name.upper(): value for name, value in options.items()}


def settings_of(options: dict[str, str]) -> Settings:
    return load_settings({}, environment=as_environment(options))


def run(options: dict[str, str], *words: str) -> subprocess.CompletedProcess[str]:
    """Run the command line with settings in its environment."""
    own = {name: value for name, value in os.environ.items() if not name.startswith(ENVIRONMENT_PREFIX)}
    environment = own | as_environment(options)
    return subprocess.run([*PROGRAM, *words], check=False, env=environment, capture_output=True, text=True, timeout=60)


def written(application: Application, *outputs: str) -> str:
    """Return all that was written: logs of workers, and outputs."""
    return "\n".join([*(worker.log.read_text() for worker in application.workers), *outputs])


@pytest.mark.parametrize(
    "kind", [pytest.param(kind, marks=MARKS.get(kind, (pytest.mark.every_case,))) for kind in KINDS]
)
async def test_a_schedule_goes_its_way_under_least_rights_and_no_secret_is_written_anywhere(
    secured: SecuredKafka, application: Application, kind: str
) -> None:
    principal, group = secured.principal(kind), f"group-{uuid.uuid4().hex[:8]}"
    options = {**secured.settings(kind), "app_id": application.settings.app_id, "web_port": str(free_port())}
    settings = settings_of(options)
    rights = [*worker_rights(settings, [application.target]), *producer_rights(settings)]
    grant(secured.servers, principal, [*rights, *consumer_rights([application.target], group)])
    worker = await application.start_worker(**options, log_level="DEBUG")
    info = json.dumps(await worker.get("/info"))

    async with SchedulerClient(settings.connection, app_id=settings.app_id) as client:
        await client.schedule("from-client", b"1", topic=application.target, after="100ms")
    sent = ("--id", "from-line", "--after", "100ms", "--target-topic", application.target, "--payload", "2")
    answer = await asyncio.to_thread(run, options, "schedule", *sent)
    assert answer.returncode == 0, answer.stderr
    consumer = AIOKafkaConsumer(
        application.target,
        group_id=group,
        isolation_level="read_committed",
        auto_offset_reset="earliest",
        **settings.connection.aiokafka(),
    )
    await consumer.start()
    try:
        async with asyncio.timeout(120):
            assert {(await consumer.getone()).value for _ in range(2)} == {b"1", b"2"}
    finally:
        await consumer.stop()
    processes = await asyncio.to_thread(subprocess.check_output, ["ps", "-eo", "args"], text=True)
    assert await worker.end() == 0
    everything = written(application, info, processes, repr(settings), repr(settings.connection), *answer.args)
    for secret in SECRETS:
        assert secret not in everything + answer.stdout + answer.stderr


async def test_a_file_is_sent_under_least_rights(
    secured: SecuredKafka, application: Application, tmp_path: Path
) -> None:
    options = {**secured.settings("PLAIN"), "app_id": application.settings.app_id}
    settings, principal = settings_of(options), secured.principal("PLAIN")
    revoke(secured.servers, principal)
    grant(secured.servers, principal, [*producer_rights(settings), *file_rights(settings)])
    await application.start_worker()
    file = tmp_path / "orders.jsonl"
    row = {"trigger": {"after": "1h"}, "target": {"topic": application.target}}
    file.write_text("".join(json.dumps({"id": f"order-{number}", **row}) + "\n" for number in range(3)))
    answer = await asyncio.to_thread(run, options, "schedule", "--from-file", str(file))
    assert answer.returncode == 0, answer.stderr
    revoke(secured.servers, principal)
    grant(secured.servers, principal, producer_rights(settings))
    file.rename(other := tmp_path / "other.jsonl")
    refused = await asyncio.to_thread(run, options, "schedule", "--from-file", str(other))
    assert refused.returncode == 1
    assert "Traceback" not in refused.stderr
    assert "right" in refused.stderr


@pytest.mark.soak
@pytest.mark.every_case
def test_tenants_and_tokens_are_changed_under_least_rights_and_not_where_the_history_cannot_be_told(
    secured: SecuredKafka, application: Application
) -> None:
    options = {**secured.settings("PLAIN"), "app_id": application.settings.app_id}
    settings, principal = settings_of(options), secured.principal("PLAIN")
    rights, history = administrator_rights(settings), settings.topics.history
    set_rules = ("tenants", "set", "shop", "--weight", "3")
    create = ("tokens", "create", "ops", "--role", "admin", "--all-tenants")
    without = [right for right in rights if right.name != history]
    for some in (without, [*without, Right("topic", history, ("Read",))]):
        revoke(secured.servers, principal)
        grant(secured.servers, principal, some)
        for change, kind in ((set_rules, "tenants"), (create, "tokens")):
            refused = run(options, *change)
            assert (refused.returncode, f"no right on topic {history}" in refused.stderr) == (1, True), refused.stderr
            assert "lst_" not in refused.stdout
            assert json.loads(run(options, kind, "list", "--json").stdout)[kind] == []

    grant(secured.servers, principal, rights)
    for words in (set_rules, ("tenants", "pause", "shop"), create):
        answer = run(options, *words)
        assert answer.returncode == 0, answer.stderr


@pytest.mark.soak
async def test_a_commands_topic_grows_under_least_rights(secured: SecuredKafka, application: Application) -> None:
    options = {**secured.settings("PLAIN"), "app_id": application.settings.app_id}
    settings, principal = settings_of(options), secured.principal("PLAIN")
    await application.start_worker()
    words = ("topics", "grow", "--partitions", str(settings.partitions + 2))
    for rights, exit_code in ((grower_rights(settings)[1:], 1), (grower_rights(settings), 0)):
        revoke(secured.servers, principal)
        grant(secured.servers, principal, rights)
        answer = await asyncio.to_thread(run, options, *words)
        assert answer.returncode == exit_code, answer.stderr
        assert "Traceback" not in answer.stderr


def test_topics_are_created_under_least_rights_with_as_many_partitions_as_another_scheduler_has(
    secured: SecuredKafka,
) -> None:
    id, other = f"made-{uuid.uuid4().hex[:8]}", f"other-{uuid.uuid4().hex[:8]}"
    options = {**secured.settings("PLAIN"), "app_id": id, "commands_topics": f"{other}:etf1"}
    settings, principal = settings_of(options), secured.principal("PLAIN")
    create_topic(secured.servers, other, 3, configs={"max.message.bytes": "10485760"})
    revoke(secured.servers, principal)
    grant(secured.servers, principal, topic_rights(settings))
    answer = run(options, "topics", "create", "--json")
    assert answer.returncode == 0, answer.stderr
    assert json.loads(answer.stdout)["existing"] == [other]
    counts = partition_counts(admin_client(secured.servers), Connection(secured.servers), 10)
    assert counts[settings.topics.changelog(other)] == counts[other] == 3
    answer = run(options, "topics", "check", "--json")
    assert (answer.returncode, json.loads(answer.stdout)["findings"]) == (0, []), answer.stdout


async def test_a_relay_sends_what_is_booked_under_least_rights(
    secured: SecuredKafka, application: Application, tmp_path: Path
) -> None:
    settings = settings_of({**secured.settings("PLAIN"), "app_id": application.settings.app_id})
    principal = secured.principal("PLAIN")
    revoke(secured.servers, principal)
    grant(secured.servers, principal, relay_rights(settings))
    metadata = MetaData()
    outbox = Outbox(metadata)
    engine = create_engine(f"sqlite:///{tmp_path}/shop.db")
    metadata.create_all(engine)
    with engine.begin() as connection:
        outbox.schedule(connection, "order-1", b"pay!", topic=application.target, after="1h")
    engine.dispose()
    relay = OutboxRelay(
        f"sqlite+aiosqlite:///{tmp_path}/shop.db", settings.connection, RelayOptions(app_id=settings.app_id)
    )
    assert await relay.drain() == 1


async def test_a_blocking_client_reads_results_and_history_without_a_right_to_a_group(
    secured: SecuredKafka, application: Application
) -> None:
    settings = settings_of({**secured.settings("PLAIN"), "app_id": application.settings.app_id})
    revoke(secured.servers, secured.principal("PLAIN"))
    with (
        BlockingSchedulerClient(settings.connection, app_id=settings.app_id) as client,
        pytest.raises(BrokerError, match=r"cannot look up topic .*: this user has no right to do so"),
    ):
        client.schedule("a", topic=application.target, after="1h", wait=False)
    grant(secured.servers, secured.principal("PLAIN"), producer_rights(settings))
    await application.start_worker()

    def use() -> list[EventType]:
        with BlockingSchedulerClient(settings.connection, app_id=settings.app_id) as client:
            outcomes = [client.schedule("a", topic=application.target, after="1h").outcome, client.cancel("a").outcome]
            assert outcomes == [Outcome.SCHEDULED, Outcome.CANCELLED]
            with closing(client.watch(from_beginning=True)) as events:
                return [event.event for event in islice(events, 2)]

    assert await asyncio.to_thread(use) == [EventType.SCHEDULED, EventType.CANCELLED]


@pytest.mark.soak
async def test_a_wrong_password_ends_commands_and_workers_at_once_with_plain_words(
    secured: SecuredKafka, application: Application
) -> None:
    options = {**secured.settings("SCRAM-SHA-512"), "app_id": application.settings.app_id, "sasl_password": "wr0ng"}
    refusal = (
        f"Kafka at {secured.address('SASL_SSL')} does not let this client in: it does not accept the password of user "
        "scram-sha-512-user: check sasl_username, sasl_password and sasl_mechanism"
    )
    for words in (["topics", "create"], ["cancel", "some", "--key", "some"], ["watch"]):
        started = time.monotonic()
        await asyncio.to_thread(run, options, *words, "--help")
        began = time.monotonic()
        answer = await asyncio.to_thread(run, options, *words)
        took, start = time.monotonic() - began, began - started  # which depends on how busy the machine is
        assert answer.stderr == f"Error: {refusal}\n"
        assert answer.returncode == 1
        assert took - start < 10
        assert "wr0ng" not in answer.stdout + answer.stderr
    worker = application.new_worker(**options)
    worker.start()
    assert await worker.ended() != 0
    log = worker.log.read_text()
    assert refusal in log
    assert "Traceback" not in log
    assert "wr0ng" not in log


@pytest.mark.parametrize(
    ("kind", "changes", "reason"),
    [
        ("OAUTHBEARER", {"sasl_oauth_client_secret": "wr0ng"}, "invalid_client: unknown client or wrong secret"),
        (
            "OAUTHBEARER",
            {"sasl_oauth_token_url": "http://127.0.0.1:1/token"},
            "cannot be reached: .*call failed",
        ),
        ("SCRAM-SHA-512", {"ssl_ca": ""}, "not trusted .*: set ssl_ca to the certificate of the authority"),
        ("SSL", {"ssl_certificate": "", "ssl_key": "", "ssl_key_password": ""}, "requires a client certificate"),
    ],
)
def test_what_is_wrong_with_a_connection_is_said(
    secured: SecuredKafka, kind: str, changes: dict[str, str], reason: str
) -> None:
    connection = settings_of({**secured.settings(kind), **changes}).connection
    with pytest.raises(BrokerError, match=reason) as caught:
        require_access(connection)
    assert "wr0ng" not in str(caught.value)


@pytest.mark.parametrize("listener", ["SSL", "SASL_PLAINTEXT", "SASL_SSL"])
def test_a_client_without_security_is_told_that_the_listener_wants_some(secured: SecuredKafka, listener: str) -> None:
    with pytest.raises(BrokerError, match="security_protocol is not what its listener expects"):
        require_access(secured.address(listener))


def test_a_certificate_for_another_host_is_refused_unless_the_check_is_off(secured: SecuredKafka) -> None:
    options = secured.settings("SCRAM-SHA-512")
    elsewhere = {**options, "broker": options["broker"].replace("127.0.0.1", "localhost")}
    with pytest.raises(BrokerRefused, match=r"certificate is for another host .* set ssl_check_hostname to false"):
        require_access(settings_of(elsewhere).connection)
    require_access(settings_of({**elsewhere, "ssl_check_hostname": "false"}).connection)


def examined(options: dict[str, str], *words: str) -> tuple[int, dict[str, list[dict[str, str]]]]:
    """Return the doctor's exit code, and its checks by name."""
    answer = run(options, "doctor", "--json", *words)
    assert answer.stdout, answer.stderr
    checks: dict[str, list[dict[str, str]]] = {}
    for check in json.loads(answer.stdout)["checks"]:
        checks.setdefault(check["name"], []).append(check)
    for secret in SECRETS:
        assert secret not in answer.stdout + answer.stderr
    return answer.returncode, checks


@pytest.fixture
def doctored(secured: SecuredKafka, application: Application, tmp_path: Path) -> Iterator[dict[str, str]]:
    """The settings of an application whose user has no rights yet."""
    kind = "SCRAM-SHA-512"
    revoke(secured.servers, secured.principal(kind))
    yield {
        **secured.settings(kind),
        "app_id": application.settings.app_id,
        "web_port": str(free_port()),
        "data_dir": str(tmp_path / "state"),
    }
    revoke(secured.servers, secured.principal(kind))


def test_each_missing_right_is_named_with_the_command_that_gives_it(
    secured: SecuredKafka, doctored: dict[str, str]
) -> None:
    exit_code, checks = examined(doctored)
    assert exit_code == 1
    app, servers = doctored["app_id"], secured.address("SASL_SSL")
    begin = (
        f"kafka-acls.sh --bootstrap-server {servers} --command-config admin.properties --add --allow-principal "
        "User:scram-sha-512-user"
    )
    fixes = {check["detail"]: check["fix"] for check in checks["rights"]}
    assert fixes[f"no right READ on topic {app}-commands"] == f"{begin} --operation Read --topic {app}-commands"
    assert fixes[f"no right WRITE on topic {app}-history"] == f"{begin} --operation Write --topic {app}-history"
    assert fixes[f"no right READ on group {app}"] == f"{begin} --operation Read --group {app}"
    assert fixes[f"no right WRITE on transactional id {app}-{app}-commands-0"] == (
        f"{begin} --operation Write --transactional-id {app} --resource-pattern-type prefixed"
    )
    assert "topics" not in checks, "topics that may not be seen are not said to be missing"
    (limits,) = checks["time-outs"]
    assert limits["status"] == "warn"
    assert limits["fix"] == f"{begin} --operation DescribeConfigs --cluster"
    assert {check["status"] for check in checks["certificate"]} == {"ok"}


@pytest.mark.soak
def test_least_rights_are_enough_for_the_doctor_and_a_literal_id_is_not(
    secured: SecuredKafka, doctored: dict[str, str]
) -> None:
    settings, principal = settings_of(doctored), secured.principal("SCRAM-SHA-512")
    rights = worker_rights(settings)
    first = settings.topics.transactional_id(settings.topics.commands, 0)
    literal = [right for right in rights if right.resource != "transactional-id"]
    grant(secured.servers, principal, [*literal, Right("transactional-id", first, ("Write",))])
    exit_code, checks = examined(doctored)
    assert exit_code == 1
    details = [check["detail"] for check in checks["rights"]]
    assert len(details) == 5
    assert f"{first}~1 to {first}~3, the spares of {first}: they look stuck" in details[0]
    assert f"transactional ids {settings.app_id}-probe-...: workers test" in details[1]
    app = settings.app_id
    assert details[2:] == [
        f"no right WRITE on transactional id {app}-tenants-change: tenants and tokens cannot be changed over HTTP",
        f"no right WRITE on transactional id {app}-delays-change: delay rules cannot be changed over HTTP",
        f"no right WRITE on transactional id {app}-redrive/...: dead letters cannot be redriven",
    ]
    assert {check["fix"].partition(" --operation ")[2] for check in checks["rights"]} == {
        f"Write --transactional-id {settings.app_id} --resource-pattern-type prefixed"
    }

    grant(secured.servers, principal, rights)
    exit_code, checks = examined(doctored)
    assert exit_code == 0, checks
    assert [check["status"] for check in checks["rights"]] == ["ok"]


@pytest.mark.parametrize("kind", KINDS)
def test_a_principal_is_who_the_broker_says_one_is(secured: SecuredKafka, kind: str) -> None:
    assert principal_of(settings_of(secured.settings(kind)).connection) == secured.principal(kind)


def test_a_right_for_the_principal_of_a_certificate_with_an_email_address_is_in_force(secured: SecuredKafka) -> None:
    pair = secured.authority.sign("ann", email="ann@example.org", password=KEY_PASSWORD)
    own = {"ssl_certificate": str(pair.certificate), "ssl_key": str(pair.key)}
    connection = settings_of({**secured.settings("SSL"), **own}).connection
    topic = f"of-ann-{uuid.uuid4().hex[:8]}"
    create_topic(secured.servers, topic, 1)
    assert topic not in partition_counts(admin_client(connection), connection, 30)
    grant(secured.servers, principal_of(connection), [Right("topic", topic, ("Describe",))])
    assert topic in partition_counts(admin_client(connection), connection, 30)
    revoke(secured.servers, principal_of(connection))


@pytest.mark.soak
@pytest.mark.parametrize("mechanism", by_day(1, ["OAUTHBEARER", "PLAIN"]))
async def test_no_request_of_a_worker_fails_when_the_login_of_its_connection_expires(
    secured: SecuredKafka, mechanism: str
) -> None:
    promptness = Promptness()
    connection = settings_of(secured.settings_with_both(mechanism)).connection
    client = AIOKafkaClient(**promptness.arguments(connection))
    promptness.bound(client, ANSWER_S)
    await client.bootstrap()
    try:
        node, begun, used = client.get_random_node(), time.monotonic(), set()
        while time.monotonic() < begun + 1.25 * LOGIN_MS / 1_000:
            await client.send(node, MetadataRequest([]))
            used |= set(client._conns.values())
            await asyncio.sleep(0.02)
        assert len(used) == 2
        assert len(client._conns) == 1, "the one that was replaced is closed"
    finally:
        await client.close()


@pytest.mark.soak
@pytest.mark.every_case
async def test_no_question_of_readers_fails_when_the_logins_of_their_connections_expire(
    secured: SecuredKafka, application: Application, caplog: pytest.LogCaptureFixture
) -> None:
    settings = settings_of({**secured.settings_with_both("SCRAM-SHA-512"), "app_id": application.settings.app_id})
    grant(secured.servers, secured.principal("SCRAM-SHA-512"), worker_rights(settings, []))
    connection, topics = settings.connection, settings.topics
    reader = await LogReader.of(connection, topics.results)
    results = await Reader.open(connection.aiokafka(), topics.results, [0])
    tenants, loaded = CompactedTopic(connection, topics.tenants), asyncio.Event()
    reading = [asyncio.create_task(tenants.follow(loaded.set)), asyncio.ensure_future(anext(aiter(results)))]
    try:
        await loaded.wait()
        begun = time.monotonic()
        while time.monotonic() < begun + 2.25 * LOGIN_MS / 1_000:
            await asyncio.gather(reader.open(topics.results), reader.extents(0), tenants.catch_up())
            await asyncio.sleep(0.05)
        assert [record for record in caplog.records if record.levelno >= logging.WARNING] == []
        assert not any(task.done() for task in reading)
    finally:
        for task in reading:
            task.cancel()
        await asyncio.wait(reading)
        await asyncio.gather(reader.close(), results.close())


@pytest.mark.soak
@pytest.mark.every_case
async def test_a_client_goes_on_with_a_renewed_certificate_when_its_own_has_expired(
    secured: SecuredKafka, tmp_path: Path
) -> None:
    pair = secured.authority.sign("tls-user", end=timedelta(seconds=15), into="renewed")
    security = KafkaSecurity(
        security_protocol="SSL", ssl_ca=secured.authority.path, ssl_certificate=pair.certificate, ssl_key=pair.key
    )
    arguments = Connection(secured.address("SSL"), security).aiokafka()
    assert await fault_of(arguments) is None
    fault = await eventually(lambda: fault_of(arguments), every=0.2)
    assert "renew the file that ssl_certificate names" in str(fault) or "does not accept the client" in str(fault)
    secured.authority.sign("tls-user", into="renewed")
    assert await fault_of(arguments) is None


@pytest.mark.soak
async def test_certificates_and_their_authority_are_renewed_while_a_worker_fires_and_no_firing_is_late_or_lost(
    secured: SecuredKafka, application: Application, tmp_path: Path
) -> None:
    count, step_ms = 600, 20
    with rotating(secured, tmp_path / "rotation") as rotation:
        before = {**rotation.settings, "app_id": application.settings.app_id}
        settings = settings_of(before)
        rights = [*worker_rights(settings, [application.target]), *producer_rights(settings)]
        grant(secured.servers, secured.principal("SSL"), rights)
        worker = await application.start_worker(**rotation.settings)
        async with application.client() as client:
            await client.schedule_many(
                {"id": f"s-{number}", "topic": application.target, "after": 10_000 + number * step_ms}
                for number in range(count)
            )
        await read_until(secured.servers, [application.target], lambda records: len(records) > count // 10)
        old = tmp_path / "old"
        shutil.copytree(tmp_path / "rotation", old)

        await asyncio.to_thread(rotation.renew)
        outdated = {name: value.replace(str(tmp_path / "rotation"), str(old)) for name, value in before.items()}
        assert await fault_of(settings_of(outdated).connection.aiokafka()) is not None, "what was valid is not any more"
        # The worker's first command connects anew, and so with the certificates that it finds now.
        async with aiohttp.ClientSession(worker.url) as session:
            body = {"id": "after", "trigger": {"after": "10ms"}, "target": {"topic": application.target}, "key": "k"}
            async with session.post("/api/v1/tenants/default/schedules", json=body) as response:
                assert response.status == 201, await response.text()

        records = await read_until(secured.servers, [application.target], lambda records: len(records) >= count + 1)
        expected = {"after", *(f"s-{number}" for number in range(count))}
        assert Counter(header(record, "schedule-id") for record in records) == dict.fromkeys(expected, 1)
        lanes = (await worker.get("/info"))["lanes"]
        assert sum(lane["restarts"] for lane in lanes) == 0
        assert max(lane["lateness"]["max_ms"] for lane in lanes) < LATE_MS
        assert await worker.end() == 0


@pytest.mark.soak
@pytest.mark.every_case
async def test_a_blocking_client_takes_renewed_certificates_in_the_middle_of_its_calls(
    secured: SecuredKafka, application: Application, tmp_path: Path
) -> None:
    await application.start_worker()
    with rotating(secured, tmp_path / "rotation") as rotation:
        settings = settings_of({**rotation.settings, "app_id": application.settings.app_id})
        grant(secured.servers, secured.principal("SSL"), producer_rights(settings))
        with BlockingSchedulerClient(settings.connection, app_id=settings.app_id) as client:
            answered = await asyncio.to_thread(answered_while_renewed, client, rotation, application.target)
    assert set(answered.values()) == {Outcome.SCHEDULED}
    # Each command was carried out once.
    await application.workers[0].shows(lambda info: sum(lane["pending"] for lane in info["lanes"]) == len(answered))


def answered_while_renewed(client: BlockingSchedulerClient, rotation: Rotation, target: str) -> dict[str, Outcome]:
    """Call without a pause while all certificates are renewed, until both of the client's ways use the new ones."""
    answered: dict[str, Outcome] = {}

    def call() -> None:
        id = f"s-{len(answered)}"
        answered[id] = client.schedule(id, topic=target, after="1h").outcome

    def used() -> tuple[object, object]:
        channel = client._channel
        assert channel._answers is not None
        return channel._producer.client, channel._answers._reader._consumer

    call()
    before = used()
    with ThreadPoolExecutor(1) as thread:
        renewal = thread.submit(rotation.renew)
        while not renewal.done():
            call()
        renewal.result()

    def are_both_others() -> bool:
        call()
        return all(now is not then for now, then in zip(used(), before, strict=True))

    eventually_blocking(are_both_others, what="another producer and another consumer")
    for _ in range(20):
        call()
    return answered


@pytest.mark.soak
def test_commands_of_a_user_without_rights_say_which_one_is_missing(
    secured: SecuredKafka, doctored: dict[str, str]
) -> None:
    app, advice = doctored["app_id"], "docs/security.md lists the rights to give"
    send = ("schedule", "--key", "a", "--after", "1s", "--target-topic", "some")
    denied = run(doctored, *send)
    assert denied.returncode == 1
    assert f"this user has no right to write to any topic; {advice}" in denied.stderr
    assert "this user has no right to do so" in run(doctored, "topics", "create").stderr
    assert "or this user may not see it" in run(doctored, "topics", "check", "--json").stdout
    grant(secured.servers, secured.principal("SCRAM-SHA-512"), producer_rights(settings_of(doctored))[:1])
    denied = run(doctored, *send)
    assert (
        denied.stderr
        == f"Error: cannot look up topic {app}-results: this user has no right on topic {app}-results; {advice}\n"
    )
    assert run(doctored, *send, "--no-wait").returncode == 0
