"""Payloads over HTTP: decoded, and with masked fields, for those who may and may not see them."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest
from aiohttp import web
from support.foreign import avro
from support.registry import FakeRegistry
from support.web_cluster.cluster import MemoryCluster, MemoryWorker

from light_scheduler.errors import ConfigurationError
from light_scheduler.host.ports import free_port
from light_scheduler.model import Target
from light_scheduler.settings import load_settings
from light_scheduler.web.access.rights import OF_RAW_PAYLOADS
from light_scheduler.web.records import decoding

from .test_dead_letters import add_letter

ONE = "/api/v1/tenants/default/schedules/a"
SCHEMA = {
    "type": "record",
    "name": "Order",
    "fields": [{"name": "id", "type": "long"}, {"name": "card", "type": "string"}],
}
SENT = '{"card":"4111","n":12345678901234567890,"<b>":["x"]}'
HEADERS = [("authorization", b"secret"), ("authorization", None), ("kind", b"order")]


@asynccontextmanager
async def running(**options: Any) -> AsyncIterator[tuple[MemoryCluster, list[MemoryWorker]]]:
    """Run two workers with settings."""
    cluster = MemoryCluster()
    cluster.settings = load_settings(options, environment={})
    try:
        yield cluster, await cluster.start([0, 2], [1, 3])
    finally:
        for worker in cluster.workers:
            await worker.stop()


async def shown(cluster: MemoryCluster, worker: MemoryWorker, role: str, path: str = ONE, **query: str) -> Any:
    """Return what a token of a role is shown."""
    headers = {"Authorization": f"Bearer {await cluster.token(role)}"}
    query_string = "".join(f"?{name}={value}" for name, value in query.items())
    return await worker.ask("GET", path + query_string, 200, headers=headers)


async def test_nothing_is_decoded_unless_it_is_asked_for_and_there_is_something(cluster: Any, workers: Any) -> None:
    cluster.put("a", payload=SENT.encode())
    plain = await workers[0].json(ONE)
    assert "decoded" not in plain
    assert await workers[0].json(ONE, decoded="true") == {**plain, "decoded": None}
    assert (await workers[0].json(ONE, 400, decoded="maybe"))["parameter"] == "decoded"


async def test_a_reader_gets_masked_fields_and_nothing_as_it_was_sent() -> None:
    async with running(masked_fields="card,auth*") as (cluster, workers):
        target = Target("out", partition_key=b"secret")
        cluster.put("a", partition=1, payload=SENT.encode(), headers=HEADERS, target=target)
        for worker in workers:
            found = await shown(cluster, worker, "read", decoded="true")
            assert found["payload"] == {"masked": True}
            assert found["target"] == {"topic": "out", "key": None, "partition": None}
            assert found["decoded"] == {"by": "json", "json": SENT.replace('"4111"', '"********"')}
            assert found["headers"] == [
                {"name": "authorization", "value": {"masked": True}},
                {"name": "authorization", "value": None},
                {"name": "kind", "value": {"text": "order"}},
            ]
            plain = await shown(cluster, worker, "read")
            assert (plain["payload"], "decoded" in plain) == ({"masked": True}, False)
            assert "4111" not in json.dumps([found, plain])
            assert "secret" not in json.dumps([found, plain])


@pytest.mark.parametrize("role", ["write", "admin"])
async def test_a_writer_gets_both_and_is_told_what_is_masked(role: str) -> None:
    async with running(masked_fields="card,authorization") as (cluster, workers):
        cluster.put("a", payload=SENT.encode(), headers=HEADERS)
        found = await shown(cluster, workers[1], role, decoded="true")
        assert found["payload"] == {"text": SENT, "masked": True}
        assert found["headers"][0]["value"] == {"text": "secret", "masked": True}
        assert found["headers"][2]["value"] == {"text": "order"}
        assert json.loads(found["decoded"]["json"])["card"] == "********"


@pytest.mark.parametrize("payload", [b"4111", b'{"card":"4111"', b'\xff{"card":"4111"}', b'"4111'])
async def test_a_reader_gets_nothing_of_a_payload_that_cannot_be_decoded(payload: bytes) -> None:
    async with running(masked_fields="card") as (cluster, workers):
        cluster.put("a", payload=payload)
        found = await shown(cluster, workers[0], "read", decoded="true")
        assert (found["payload"], found["decoded"]) == ({"masked": True}, None)
        cluster.put("a", payload=None)
        found = await shown(cluster, workers[0], "read", decoded="true")
        assert (found["payload"], found["decoded"]) == (None, None)


async def test_dead_letters_are_masked_and_rejected_commands_are_not_decoded_at_all() -> None:
    async with running(masked_fields="card,h,schedule-target-topic") as (cluster, workers):
        firing = add_letter(cluster, "refused", value=SENT.encode(), headers=[("h", b"secret")])
        command = add_letter(cluster, value=b'{"payload":{"json":"{\\"card\\":\\"4111\\"}"}}')
        for letter in (firing, command):
            found = await shown(cluster, workers[0], "read", f"/api/v1/dead-letters/{letter}", decoded="true")
            assert found["payload"] == {"masked": True}
            assert found["headers"][0]["value"] == {"masked": True}
            assert found["decoded"] == (
                None if letter == command else {"by": "json", "json": SENT.replace('"4111"', '"********"')}
            )
            whole = await shown(cluster, workers[0], "write", f"/api/v1/dead-letters/{letter}")
            assert "4111" in whole["payload"]["text"]


async def test_apis_with_payloads_of_their_own_need_a_writer_while_fields_are_masked() -> None:
    async with running(masked_fields="card", commands_topics="x:etf1,y:light4j") as (cluster, workers):
        paths = {
            operation.name: operation.path.format(name="light-scheduler", id="a")
            for operation in workers_operations(cluster)
            if operation.name in OF_RAW_PAYLOADS
        }
        assert paths.keys() == OF_RAW_PAYLOADS
        for path in paths.values():
            headers = {"Authorization": f"Bearer {await cluster.token('read')}"}
            assert "masked_fields" in (await workers[0].ask("GET", path, 403, headers=headers))["detail"]


def workers_operations(cluster: MemoryCluster) -> list[Any]:
    """Return the operations of other schedulers' APIs."""
    from light_scheduler.web.api.operations import OPERATIONS
    from light_scheduler.web.etf1.operations import with_etf1
    from light_scheduler.web.light4j.operations import LIGHT4J_OPERATIONS

    del cluster
    return [*with_etf1(OPERATIONS), *LIGHT4J_OPERATIONS]


async def test_avro_is_decoded_with_the_schema_registry() -> None:
    registry = FakeRegistry({7: SCHEMA})
    async with (
        registry.serve(free_port()) as address,
        running(schema_registry=address, masked_fields="card") as (cluster, workers),
    ):
        cluster.put("a", partition=1, payload=avro(SCHEMA, {"id": 1, "card": "4111"}, 7))
        for _ in range(2):
            found = await shown(cluster, workers[0], "read", decoded="true")
            assert found["decoded"] == {"by": "avro", "json": '{"id":1,"card":"********"}'}
        assert registry.asked == [7]
        cluster.put("a", partition=1, payload=avro(SCHEMA, {"id": 1, "card": "4111"}, 8))
        found = await shown(cluster, workers[0], "read", decoded="true")
        error = "the schema of id 8: the schema registry does not have it"
        assert found["decoded"] == {"by": "avro", "error": error}


async def test_avro_is_decoded_with_schemas_that_refer_to_others() -> None:
    cancelled = {"type": "record", "name": "Cancelled", "fields": [{"name": "order", "type": "Order"}]}
    registry = FakeRegistry({7: ["Order", "Cancelled"]})
    order = registry.refer("Order", "orders", 2, SCHEMA)
    registry.more[7] = {"references": [registry.refer("Cancelled", "cancelled", 1, cancelled, order), order]}
    payload = b"\0\0\0\0\x07\x02" + avro(SCHEMA, {"id": 1, "card": "4111"})
    async with (
        registry.serve(free_port()) as address,
        running(schema_registry=address, masked_fields="card") as (cluster, workers),
    ):
        cluster.put("a", partition=1, payload=payload)
        found = await shown(cluster, workers[0], "read", decoded="true")
    assert found["decoded"] == {"by": "avro", "json": '{"order":{"id":1,"card":"********"}}'}


async def test_avro_in_single_object_encoding_is_decoded_with_a_folder_of_schemas(tmp_path: Path) -> None:
    (tmp_path / "int.avsc").write_text('"int"')
    payload = bytes.fromhex("c3018f5c393f1ad575720e")
    for options, found in (({"payload_schemas": str(tmp_path)}, {"by": "avro", "json": "7"}), ({}, None)):
        async with running(**options) as (cluster, workers):
            cluster.put("a", partition=1, payload=payload)
            assert (await shown(cluster, workers[0], "read", decoded="true"))["decoded"] == found


async def test_a_registry_that_does_not_answer_is_the_error(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(decoding, "SCHEMA_TIMEOUT_S", 0.3)
    async with running(schema_registry=f"http://127.0.0.1:{free_port()}") as (cluster, workers):
        cluster.put("a", payload=avro(SCHEMA, {"id": 1, "card": "4111"}, 7))
        found = await shown(cluster, workers[0], "read", decoded="true")
        assert "cannot be asked for schema 7" in found["decoded"]["error"]
        assert found["payload"] == {"text": "\0\0\0\0\x07\x02\x084111"}


async def test_the_hook_decodes_what_it_knows(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    hook = "def f(payload, headers, topic):\n    return [topic, len(payload), dict(headers)['kind'].decode()]\n"
    (tmp_path / "hook_over_http.py").write_text(hook)
    monkeypatch.syspath_prepend(tmp_path)
    async with running(payload_decoder="hook_over_http:f") as (cluster, workers):
        cluster.put("a", partition=1, payload=b"\xff\x00", headers=[("kind", b"order")])
        found = await shown(cluster, workers[0], "read", decoded="true")
        assert found["decoded"] == {"by": "hook", "json": '["out",2,"order"]'}
        assert found["payload"] == {"base64": "/wA="}


async def test_a_reader_is_told_the_kind_of_an_error_only_while_fields_are_masked(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    hook = "def f(payload, headers, topic):\n    raise ValueError(f'cannot read {payload}')\n"
    (tmp_path / "hook_that_quotes.py").write_text(hook)
    monkeypatch.syspath_prepend(tmp_path)
    async with running(payload_decoder="hook_that_quotes:f", masked_fields="card") as (cluster, workers):
        cluster.put("a", payload=SENT.encode())
        found = await shown(cluster, workers[0], "read", decoded="true")
        assert found["decoded"] == {"by": "hook", "error": "ValueError"}
        found = await shown(cluster, workers[0], "write", decoded="true")
        assert "4111" in found["decoded"]["error"]


async def test_a_worker_with_a_hook_that_cannot_be_loaded_does_not_start() -> None:
    settings = load_settings({"payload_decoder": "nothing_over_http:f"}, environment={})
    with pytest.raises(ConfigurationError, match="payload_decoder"):
        await anext(decoding.Decoding(settings).running(web.Application()))


async def test_without_tokens_everybody_may_see_what_is_masked() -> None:
    async with running(masked_fields="card") as (cluster, workers):
        cluster.put("a", payload=SENT.encode())
        assert (await workers[0].json(ONE))["payload"] == {"text": SENT, "masked": True}


async def test_the_command_line_shows_what_was_decoded(run: Any) -> None:
    async with running(masked_fields="card,authorization") as (cluster, workers):
        cluster.put("a", payload=b'{"card":"4111"}', headers=HEADERS)
        letter = add_letter(cluster, "refused", value=b'{"card":"4111"}')
        for arguments in (("get", "a"), ("dead-letters", "show", letter)):
            code, out, _ = await run(*arguments, "--url", workers[0].url)
            assert code == 0
            assert '{"card":"********"}' in out
            assert "4111" not in out
            assert "secret" not in out
