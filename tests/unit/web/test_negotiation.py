"""ETag, If-Match and Prefer: a change of the version that a client knows, and how long it waits."""

from __future__ import annotations

from typing import Any

import pytest

from light_scheduler.client import Receipt
from light_scheduler.client.errors import ResultTimeout
from light_scheduler.web.api.openapi import openapi_document
from light_scheduler.wire import partition_for

MANY = "/api/v1/tenants/default/schedules"
ONE = f"{MANY}/a"
BODY = {"trigger": {"at": 1_900_000_000_000}, "target": {"topic": "out"}}


async def answered(worker: Any, method: str, path: str, body: Any = None, **headers: str) -> tuple[int, Any, Any]:
    named = {name.replace("_", "-"): value for name, value in headers.items()}
    async with worker.client.request(method, path, json=body, headers=named) as response:
        return response.status, response.headers, await response.json(content_type=None)


async def test_an_etag_is_the_version_of_what_is_shown_or_changed(workers: Any) -> None:
    for version, status in ((1, 201), (2, 200)):
        put = await answered(workers[0], "PUT", ONE, BODY)
        assert (put[0], put[1]["ETag"]) == (status, f'"{version}"')
        assert (await answered(workers[1], "GET", ONE))[1]["ETag"] == f'"{version}"'


@pytest.mark.parametrize(
    ("method", "path", "body"),
    [
        ("PUT", "", BODY),
        ("DELETE", "", None),
        ("POST", "/pause", None),
        ("POST", "/reschedule", {"trigger": {"after": "1h"}}),
    ],
)
async def test_a_change_of_another_version_fails_and_changes_nothing(
    workers: Any, method: str, path: str, body: Any
) -> None:
    await answered(workers[0], "PUT", ONE, BODY)
    status, _, problem = await answered(workers[0], method, ONE + path, body, If_Match='"7"')
    assert (status, problem["type"]) == (412, "urn:light-scheduler:problem:precondition-failed")
    assert problem["result"]["outcome"] == "conflict"
    assert (await answered(workers[0], "GET", ONE))[2]["version"] == 1
    assert (await answered(workers[0], method, ONE + path, body, If_Match='"1"'))[0] == 200


async def test_without_if_match_another_version_is_a_conflict(workers: Any) -> None:
    await answered(workers[0], "PUT", ONE, BODY)
    assert (await answered(workers[0], "DELETE", f"{ONE}?expected_version=7"))[0] == 409
    status, _, problem = await answered(workers[0], "DELETE", f"{ONE}?expected_version=7", If_Match='"1"')
    assert (status, problem["parameter"]) == (400, "expected_version")
    assert (await answered(workers[0], "DELETE", f"{ONE}?expected_version=1", If_Match='"1"'))[0] == 200


@pytest.mark.parametrize(
    ("method", "path", "body"),
    [
        ("PUT", "", BODY),
        ("PUT", "", {**BODY, "expected_version": 1}),
        ("DELETE", "", None),
        *(("POST", f"/{action}", None) for action in ("pause", "resume", "trigger")),
        ("POST", "/reschedule", {"trigger": {"after": "1h"}}),
    ],
)
async def test_any_version_matches_a_star_if_there_is_a_schedule(
    workers: Any, method: str, path: str, body: Any
) -> None:
    for query in ("", "?wait=false"):
        status, _, problem = await answered(workers[0], method, ONE + path + query, body, If_Match="*")
        assert (status, problem["type"]) == (412, "urn:light-scheduler:problem:precondition-failed")
    assert workers[0].commands.seen == []
    await answered(workers[0], "PUT", ONE, BODY)
    assert (await answered(workers[1], method, ONE + path, body, If_Match=" * "))[0] == 200


async def test_a_star_replaces_a_schedule_where_it_is_and_whichever_version_it_has_by_then(
    cluster: Any, workers: Any
) -> None:
    home = partition_for(b"a", 4)
    cluster.put("a", partition=(home + 1) % 4)
    ask, commands = workers[0].commands.ask, workers[0].commands

    async def ask_after_another(make: Any, timeout: float) -> Any:
        commands.ask = ask
        await answered(workers[1], "PUT", ONE, BODY)
        return await ask(make, timeout)

    commands.ask = ask_after_another
    status, headers, result = await answered(workers[0], "PUT", ONE, BODY, If_Match="*")
    assert (status, headers["ETag"], result["partition"]) == (200, '"3"', (home + 1) % 4)
    status, _, _ = await answered(workers[0], "PUT", f"{ONE}?wait=false", BODY, If_Match="*")
    assert (status, commands.seen[-1].expected_version) == (202, 3)
    assert (await answered(workers[1], "GET", ONE))[1]["ETag"] == '"4"'


async def test_a_star_creates_nothing_in_place_of_a_schedule_that_goes_meanwhile(workers: Any) -> None:
    await answered(workers[0], "PUT", ONE, BODY)
    ask, commands = workers[0].commands.ask, workers[0].commands

    async def ask_after_the_end(make: Any, timeout: float) -> Any:
        commands.ask = ask
        await answered(workers[1], "DELETE", ONE)
        return await ask(make, timeout)

    commands.ask = ask_after_the_end
    status, _, problem = await answered(workers[0], "PUT", ONE, BODY, If_Match="*")
    assert (status, problem["result"]["outcome"]) == (412, "conflict")
    assert (await answered(workers[0], "GET", ONE))[0] == 404


async def test_a_star_matches_nothing_where_a_schedule_goes_before_its_command_is_carried_out(workers: Any) -> None:
    await answered(workers[0], "PUT", ONE, BODY)
    ask, commands = workers[0].commands.ask, workers[0].commands

    async def ask_after_the_end(make: Any, timeout: float) -> Any:
        commands.ask = ask
        await answered(workers[1], "DELETE", ONE)
        return await ask(make, timeout)

    commands.ask = ask_after_the_end
    status, _, problem = await answered(workers[0], "DELETE", ONE, If_Match="*")
    assert (status, problem["type"]) == (412, "urn:light-scheduler:problem:precondition-failed")


async def test_all_tries_of_a_star_share_the_time_that_it_may_take(workers: Any) -> None:
    await answered(workers[0], "PUT", ONE, BODY)
    ask, commands, times = workers[0].commands.ask, workers[0].commands, []

    async def ask_after_another(make: Any, timeout: float) -> Any:
        times.append(timeout)
        commands.ask = ask
        await answered(workers[1], "PUT", ONE, BODY)
        commands.ask = ask_after_another
        return await ask(make, timeout)

    commands.ask = ask_after_another
    assert (await answered(workers[0], "PUT", f"{ONE}?timeout=30s", BODY, If_Match="*"))[0] == 412
    assert len(times) > 1
    assert times == sorted(set(times), reverse=True)


async def test_what_a_body_says_of_versions_counts_besides_a_star(workers: Any) -> None:
    for _ in range(2):
        await answered(workers[0], "PUT", ONE, BODY)
    for more in ({"expected_version": 1}, {"on_conflict": "fail"}):
        status, _, problem = await answered(workers[0], "PUT", ONE, {**BODY, **more}, If_Match="*")
        assert (status, problem["result"]["outcome"]) == (412, "conflict")
    assert (await answered(workers[0], "DELETE", f"{ONE}?expected_version=1", If_Match="*"))[0] == 412
    assert (await answered(workers[0], "GET", ONE))[1]["ETag"] == '"2"'


@pytest.mark.parametrize("given", ["*, *", '*, "1"', "1", 'W/"1"', '"1", "2"', '""'])
async def test_what_is_no_etag_of_a_schedule_is_refused(workers: Any, given: str) -> None:
    await answered(workers[0], "PUT", ONE, BODY)
    status, _, problem = await answered(workers[0], "DELETE", ONE, If_Match=given)
    assert (status, problem["parameter"]) == (400, "If-Match")
    assert workers[0].commands.seen[1:] == []


@pytest.mark.parametrize(("method", "path"), [("PUT", ONE), ("POST", ONE.removesuffix("/a"))])
async def test_if_none_match_of_anything_creates_and_replaces_nothing(workers: Any, method: str, path: str) -> None:
    body = BODY if method == "PUT" else {**BODY, "id": "a"}
    assert (await answered(workers[0], method, path, body, If_None_Match="*"))[0] == 201
    status, _, problem = await answered(workers[1], method, path, body, If_None_Match="*")
    assert (status, problem["type"]) == (412, "urn:light-scheduler:problem:precondition-failed")
    assert problem["result"]["outcome"] == "conflict"
    assert (await answered(workers[0], "GET", ONE))[2]["version"] == 1
    keyed = {"Idempotency-Key": "1", "If_None_Match": "*"}
    assert (await answered(workers[0], method, path, body, **keyed))[0] == 412
    assert (await answered(workers[0], method, path, body))[0] == 200


@pytest.mark.parametrize(
    ("headers", "member"),
    [({"If_None_Match": "*"}, {"on_conflict": "replace"}), ({"If_Match": '"1"'}, {"expected_version": 2})],
)
async def test_a_member_that_contradicts_a_header_is_refused_and_the_header_is_told_of(
    workers: Any, headers: Any, member: Any
) -> None:
    status, _, problem = await answered(workers[0], "PUT", ONE, {**BODY, **member}, **headers)
    assert (status, problem["parameter"]) == (400, *member)
    assert "a header says" in problem["detail"]


@pytest.mark.parametrize("headers", [{"If_None_Match": '"1"'}, {"If_None_Match": "*", "If_Match": '"1"'}])
async def test_a_put_takes_no_etag_that_must_not_match(workers: Any, headers: Any) -> None:
    status, _, problem = await answered(workers[0], "PUT", ONE, BODY, **headers)
    assert (status, problem["parameter"]) == (400, "If-None-Match")
    assert workers[0].commands.seen == []


@pytest.mark.parametrize(
    ("method", "path", "header"),
    [
        ("POST", f"{MANY}:batch", "If-None-Match"),
        ("POST", f"{MANY}:batch", "Idempotency-Key"),
        ("POST", MANY, "If-Match"),
        ("POST", f"{MANY}:cancel", "If-Match"),
        ("POST", f"{ONE}/complete", "If-Match"),
        *(("POST", f"{ONE}/{action}", "Idempotency-Key") for action in ("pause", "reschedule", "trigger", "complete")),
        ("POST", f"{MANY}:cancel", "Idempotency-Key"),
        ("POST", "/api/v1/dead-letters/0-0/redrive", "Idempotency-Key"),
        ("DELETE", ONE, "If-None-Match"),
        ("PUT", "/api/v1/tenants/default", "If-Match"),
    ],
)
async def test_a_condition_that_a_request_would_not_keep_is_refused(
    workers: Any, method: str, path: str, header: str
) -> None:
    await answered(workers[0], "PUT", ONE, BODY)
    status, _, problem = await answered(workers[0], method, path, {**BODY, "id": "a"}, **{header: "*"})
    assert (status, problem["parameter"]) == (400, header)
    assert "leave it out" in problem["detail"]
    assert len(workers[0].commands.seen) == 1


async def test_a_put_or_delete_can_be_repeated_with_a_key_or_without(workers: Any) -> None:
    assert (await answered(workers[0], "PUT", ONE, BODY, Idempotency_Key="1"))[0] == 201
    assert (await answered(workers[0], "DELETE", ONE, Idempotency_Key="1"))[0] == 200


async def test_a_get_of_a_known_version_is_not_modified(workers: Any) -> None:
    assert (await answered(workers[0], "GET", ONE, If_None_Match="*"))[0] == 404
    await answered(workers[0], "PUT", ONE, BODY)
    for known in ('"1"', 'W/"1"', '"7", "1"', "*"):
        status, headers, document = await answered(workers[1], "GET", ONE, If_None_Match=known)
        assert (status, headers["ETag"], document) == (304, '"1"', None)
    await answered(workers[0], "PUT", ONE, BODY)
    for stale in ('"1"', "1", '"12"'):
        status, headers, document = await answered(workers[1], "GET", ONE, If_None_Match=stale)
        assert (status, headers["ETag"], document["version"]) == (200, '"2"', 2)


async def test_an_answer_that_takes_longer_than_preferred_is_a_202(workers: Any) -> None:
    waited: list[float] = []

    async def ask(make: Any, timeout: float) -> Any:
        waited.append(timeout)
        raise ResultTimeout("no answer", Receipt("default", "a", 1, 7))

    workers[0].commands.ask = ask
    status, headers, document = await answered(workers[0], "PUT", ONE, BODY, Prefer="handling=lenient, wait=5")
    assert (status, headers["Preference-Applied"], document["offset"]) == (202, "wait=5", 7)
    assert (await answered(workers[0], "PUT", ONE, BODY, Prefer="wait=900"))[1]["Preference-Applied"] == "wait=60"
    assert (await answered(workers[0], "PUT", ONE, BODY))[0] == 504
    assert (await answered(workers[0], "PUT", f"{ONE}?timeout=7s", BODY, Prefer="wait=5"))[0] == 504
    assert (await answered(workers[0], "PUT", ONE, BODY, Prefer="wait=soon"))[0] == 504
    assert waited == [5, 60, 10, 7, 10]


@pytest.mark.parametrize("preference", ["respond-async", "wait=0"])
async def test_who_prefers_not_to_wait_gets_a_202_at_once(workers: Any, preference: str) -> None:
    status, headers, document = await answered(workers[0], "PUT", ONE, BODY, Prefer=preference)
    assert (status, headers["Preference-Applied"], document["id"]) == (202, "respond-async", "a")
    status, headers, _ = await answered(workers[0], "POST", f"{ONE}/pause", Prefer="wait=5")
    assert (status, headers["Preference-Applied"]) == (200, "wait=5")


def test_openapi_tells_of_headers_tags_and_servers() -> None:
    document = openapi_document("1")
    put = document["paths"]["/api/v1/tenants/{tenant}/schedules/{id}"]["put"]
    assert [each["name"] for each in put["parameters"] if each["in"] == "header"] == [
        "If-Match",
        "If-None-Match",
        "Prefer",
    ]
    assert "content" not in document["paths"]["/api/v1/tenants/{tenant}/schedules/{id}"]["get"]["responses"]["304"]
    assert set(put["responses"]["201"]["headers"]) == {"ETag", "Location"}
    assert "412" in put["responses"]
    assert "Retry-After" in put["responses"]["429"]["headers"]
    assert put["tags"] == ["schedules"]
    tags = {each["name"] for each in document["tags"]}
    things = {"schedules", "upcoming", "dead-letters", "preview", "dry-run", "delays", "tenants", "tokens", "changes"}
    assert tags == things | {"cluster", "events", "identity", "overview", "worker"}
    assert document["servers"]
