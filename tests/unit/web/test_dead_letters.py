"""Dead letters over HTTP: who sees which, and what is sent when one is redriven."""

from __future__ import annotations

import json
from types import SimpleNamespace
from typing import Any

import pytest

from light_scheduler.errors import BrokerError
from light_scheduler.model import DeadLetter, DeadLetterCause, EventType, HistoryEvent
from light_scheduler.model.tenant_rules import TenantRules, TenantState
from light_scheduler.wire import (
    decode_history,
    encode_dead_letter,
    encode_history,
    history_key,
    parse_firing,
    partition_for,
)
from light_scheduler.wire.events import SCHEDULE_KEY_TOO_LARGE
from light_scheduler.wire.requester import requester_of
from light_scheduler.wire.tenants import StoredRules, StoredState, rules_record, state_record

NOW = 1_800_000_000_000
HOUR = 3_600_000
TOPIC = "light-scheduler-dead-letters"
HISTORY = "light-scheduler-history"
COMMANDS = "light-scheduler-commands"
PATH = "/api/v1/dead-letters"


def add_letter(
    cluster: Any, cause: str = "rejected", *, partition: int = 0, at: int = NOW - HOUR, **fields: Any
) -> str:
    """Write a dead letter and return its name."""
    is_firing = cause != "rejected"
    told: dict[str, Any] = {
        "reason": "wrong",
        "field": None if is_firing else "schedule-at",
        "tenant": "default",
        "id": "a",
        "due": NOW - 2 * HOUR if is_firing else None,
        "target_topic": "out" if is_firing else None,
        "source_partition": 1,
        "source_offset": 5,
        "key": b"k",
        "value": b"\xff",
        "headers": [("h", b"1"), ("n", None)] if is_firing else [("schedule-target-topic", b"out")],
        **fields,
    }
    letter = DeadLetter(cause=DeadLetterCause(cause), at=at, **told)
    offset = cluster.topics.add(TOPIC, *encode_dead_letter(letter, COMMANDS), partition=partition, at=at)
    return f"{partition}-{offset}"


async def test_a_list_shows_the_newest_first_and_what_is_asked_for(workers: Any, cluster: Any) -> None:
    refused = add_letter(cluster, "refused", id="b", at=NOW - 3 * HOUR)
    rejected = add_letter(cluster, at=NOW - 2 * HOUR)
    missed = add_letter(cluster, "missed", tenant="shop", partition=1)
    cluster.topics.add(TOPIC, b"k", b"of somebody else")

    async def names(**parameters: str) -> list[str]:
        page = await workers[1].json(PATH, **parameters)
        return [each["letter"] for each in page["dead_letters"]]

    assert await names() == [missed, rejected, refused]
    assert await names(tenant="shop") == [missed]
    assert await names(cause="refused") == [refused]
    assert await names(id="a", tenant="default") == [rejected]
    assert await names(since=str(NOW - 2 * HOUR)) == [missed, rejected]
    first = await workers[0].json(PATH, limit="2")
    rest = await workers[0].json(PATH, cursor=first["next_cursor"])
    assert [each["letter"] for page in (first, rest) for each in page["dead_letters"]] == [missed, rejected, refused]
    assert (await workers[0].json(PATH, 400, cause="lost"))["parameter"] == "cause"


async def test_one_is_shown_with_its_bytes(workers: Any, cluster: Any) -> None:
    shown = await workers[0].json(f"{PATH}/{add_letter(cluster, 'refused')}")
    assert shown == {
        "letter": "0-0",
        "kind": "firing",
        "cause": "refused",
        "reason": "wrong",
        "field": None,
        "tenant": "default",
        "id": "a",
        "at": NOW - HOUR,
        "due": NOW - 2 * HOUR,
        "firing_id": f"a@{NOW - 2 * HOUR}",
        "target_topic": "out",
        "source": {"topic": COMMANDS, "partition": 1, "offset": 5},
        "key": {"text": "k"},
        "payload_bytes": 1,
        "dropped": False,
        "lacks": None,
        "headers": [{"name": "h", "value": {"text": "1"}}, {"name": "n", "value": None}],
        "payload": {"base64": "/w=="},
    }


@pytest.mark.parametrize(
    ("fields", "partition"),
    [
        ({"target_partition": 1}, 1),
        ({"target_partition": 0}, 0),
        ({"target_partition_key": b"k-4"}, partition_for(b"k-4", 2)),
        ({"target_partition_key": b"k-5"}, partition_for(b"k-5", 2)),
        ({}, partition_for(b"k", 2)),
        ({"key": None}, partition_for(b"a", 2)),
    ],
)
async def test_a_firing_goes_to_the_partition_that_its_schedule_chose(
    workers: Any, cluster: Any, fields: Any, partition: int
) -> None:
    letter = add_letter(cluster, "refused", **fields)
    answer = await workers[0].ask("POST", f"{PATH}/{letter}/redrive", 200)
    assert (answer["topic"], answer["partition"]) == ("out", partition)


async def test_a_firing_for_a_partition_that_is_not_there_is_sent_to_no_other(workers: Any, cluster: Any) -> None:
    letter = add_letter(cluster, "refused", target_partition=2)
    problem = await workers[0].ask("POST", f"{PATH}/{letter}/redrive", 400)
    assert problem["detail"] == "target.partition: topic out has no partition 2"
    assert "out" not in cluster.topics.records


@pytest.mark.parametrize(("name", "status"), [("0-7", 404), ("9-0", 404), ("1-0", 404), ("0", 400), ("0-x", 400)])
async def test_a_letter_that_is_not_there_is_told_from_a_wrong_name(
    workers: Any, cluster: Any, name: str, status: int
) -> None:
    add_letter(cluster)
    cluster.topics.add(TOPIC, b"k", b"of somebody else", partition=1)
    await workers[0].json(f"{PATH}/{name}", status)
    await workers[0].ask("POST", f"{PATH}/{name}/redrive", status)


HEADERS = [("schedule-target-topic", b"out"), ("h", b"1")]
JSON = [("content-type", b"application/vnd.light-scheduler.command+json"), ("h", b"1")]


@pytest.mark.parametrize(
    ("headers", "value", "by"),
    [(HEADERS, b"x", None), (JSON, b'{"id": "a", "target": {"topic": "out"}}', "ops")],
    ids=["in headers", "in JSON"],
)
async def test_a_command_is_sent_again_as_it_was_and_the_history_says_by_whom(
    workers: Any, cluster: Any, headers: Any, value: bytes, by: str | None
) -> None:
    token = await cluster.token("write", "default", name="ops")
    before = ("schedule-requested-by", b"somebody before")
    letter = add_letter(cluster, value=value, headers=[*headers, before])
    answer = await workers[0].ask("POST", f"{PATH}/{letter}/redrive", 200, headers={"Authorization": f"Bearer {token}"})
    assert answer == {
        "letter": letter, "kind": "command", "tenant": "default", "id": "a", "topic": COMMANDS, "partition": 1,
        "offset": 0,
    }  # fmt: skip
    (sent,) = cluster.topics.records[COMMANDS][1]
    assert (sent.key, sent.value, sent.headers[:2]) == (b"k", value, headers)
    requester = requester_of(sent, workers[0].access.book.peer_secret)
    assert (None if requester is None else requester.by) == by
    admin = {"Authorization": f"Bearer {await cluster.token('admin', 'default')}"}
    page = await workers[0].ask("GET", "/api/v1/changes?tenant=default", 200, headers=admin)
    (change,) = [each for each in page["changes"] if each["reason"].startswith("dead letter")]
    assert change["reason"] == f"dead letter {letter} redriven: command for a, to {COMMANDS}, partition 1"
    assert (change["tenant"], change["at"], change["by"], change["address"]) == ("default", NOW, "ops", "127.0.0.1")


async def test_a_command_of_no_id_is_sent_again_and_told_of_without_one(workers: Any, cluster: Any) -> None:
    letter = add_letter(cluster, id=None, key=None)
    await workers[0].ask("POST", f"{PATH}/{letter}/redrive", 200)
    event = decode_history(cluster.topics.records[HISTORY][0][0].value)
    assert (event.by, event.reason) == (
        "anonymous",
        f"dead letter {letter} redriven: command, to {COMMANDS}, partition 1",
    )


@pytest.mark.parametrize("key", [b"k", None])
async def test_a_firing_is_delivered_as_it_was_meant_and_the_history_says_by_whom(
    workers: Any, cluster: Any, key: bytes | None
) -> None:
    letter = add_letter(cluster, "unacknowledged", key=key)
    told = HistoryEvent(
        EventType.DEAD_LETTERED, "default", "a", 4, NOW - 2 * HOUR, NOW - HOUR, 3, 2, "out", "tried", partition=1
    )
    cluster.topics.add(HISTORY, history_key("default", "a"), encode_history(told), partition=1, at=NOW - HOUR)
    answers = [await workers[0].ask("POST", f"{PATH}/{letter}/redrive", 200) for _ in range(2)]
    partition = partition_for(b"k" if key else b"a", 2)
    assert [(each["topic"], each["partition"], each["offset"]) for each in answers] == [
        ("out", partition, 0),
        ("out", partition, 1),
    ]
    first, second = map(parse_firing, cluster.topics.records["out"][partition])
    assert (first.key, first.payload, first.headers) == (key, b"\xff", [("h", b"1"), ("n", None)])
    assert (first.tenant, first.firing_id, first.due) == ("default", f"a@{NOW - 2 * HOUR}", NOW - 2 * HOUR)
    assert (first.version, first.sequence, first.attempt, first.fired_at) == (4, 3, 2, NOW)
    assert first.delivery_id == second.delivery_id == f"{COMMANDS}:1:5:4:3:{NOW - 2 * HOUR}:2:{letter}"
    event = decode_history(cluster.topics.records[HISTORY][0][0].value)
    assert (event.event, event.at, event.version, event.by) == (EventType.FIRED, NOW, 4, "anonymous")
    assert event.reason == f"redriven from dead letter {letter}"


async def test_a_firing_whose_history_is_gone_counts_from_one(workers: Any, cluster: Any) -> None:
    await workers[0].ask("POST", f"{PATH}/{add_letter(cluster, 'missed')}/redrive", 200)
    (delivered,) = map(parse_firing, cluster.topics.records["out"][partition_for(b"k", 2)])
    assert (delivered.version, delivered.sequence, delivered.attempt) == (1, 1, 1)


async def test_what_cannot_be_redriven_is_a_conflict_that_says_why(workers: Any, cluster: Any) -> None:
    key, value, headers = encode_dead_letter(
        DeadLetter(DeadLetterCause.REJECTED, "x", None, "default", "a", NOW, None, None, 1, 5, None, None, []), COMMANDS
    )
    cluster.topics.add(TOPIC, key, value, [*headers, ("dead-letter-dropped", b"too large")])
    problem = await workers[0].ask("POST", f"{PATH}/0-0/redrive", 409)
    assert problem["type"].endswith(":not-redrivable")
    assert "offset 5" in problem["detail"]
    assert ((await workers[0].ask("GET", f"{PATH}/0-0", 200))["dropped"]) is True
    cluster.topics.add(TOPIC, key, value, encode_dead_letter(
        DeadLetter(DeadLetterCause.REJECTED, "x", None, "default", "a", NOW, None, None, 1, 5, None, None, []), "gone"
    )[2])  # fmt: skip
    assert "gone" in (await workers[0].ask("POST", f"{PATH}/0-1/redrive", 409))["detail"]


async def test_a_firing_without_the_key_of_its_schedule_is_shown_as_such_and_not_redriven(
    workers: Any, cluster: Any
) -> None:
    name = add_letter(cluster, "refused")
    partition, offset = map(int, name.split("-"))
    whole = cluster.topics.records[TOPIC][partition][offset]
    cluster.topics.add(TOPIC, whole.key, whole.value, [*whole.headers, SCHEDULE_KEY_TOO_LARGE])
    listed = await workers[0].ask("GET", PATH, 200)
    told = {each["letter"]: (each["dropped"], each["lacks"]) for each in listed["dead_letters"]}
    (lacking,) = set(told) - {name}
    assert told == {name: (False, None), lacking: (False, "key of the schedule")}
    assert (await workers[0].ask("GET", f"{PATH}/{lacking}", 200))["payload"] == {"base64": "/w=="}
    problem = await workers[0].ask("POST", f"{PATH}/{lacking}/redrive", 409)
    assert problem["type"].endswith(":not-redrivable")
    assert f"Dead letter {lacking} lacks the key of the schedule" in problem["detail"]
    assert "out" not in cluster.topics.records
    await workers[0].ask("POST", f"{PATH}/{name}/redrive", 200)


async def test_the_command_line_says_what_a_letter_lacks_and_does_not_redrive_it(
    workers: Any, cluster: Any, run: Any
) -> None:
    name = add_letter(cluster, "refused")
    (whole,) = cluster.topics.records[TOPIC][0]
    cluster.topics.add(TOPIC, whole.key, whole.value, [*whole.headers, SCHEDULE_KEY_TOO_LARGE])
    url = ("--url", workers[0].url)
    _, listed, _ = await run("dead-letters", "list", *url)
    assert listed.count("wrong") == 2
    assert listed.count("wrong (left out: key of the schedule)") == 1
    _, shown, _ = await run("dead-letters", "show", "0-1", *url)
    assert "key of the schedule: it cannot be sent again" in shown
    assert "left out" not in (await run("dead-letters", "show", name, *url))[1]
    code, _, error = await run("dead-letters", "redrive", "0-1", *url)
    assert (code, "lacks the key of the schedule" in error) == (1, True)


@pytest.mark.parametrize("topic", ["light-scheduler-tenants", "light-scheduler-idempotency", "__consumer_offsets"])
async def test_a_forged_firing_is_not_sent_to_an_internal_topic_whoever_asks(
    workers: Any, cluster: Any, topic: str
) -> None:
    problem = await workers[0].ask("POST", f"{PATH}/{add_letter(cluster, 'refused', target_topic=topic)}/redrive", 409)
    assert problem["type"].endswith(":not-redrivable")
    assert f"is for {topic}, an internal topic" in problem["detail"]
    assert topic not in cluster.topics.records
    own = add_letter(cluster, "refused", target_topic=COMMANDS)
    await workers[0].ask("POST", f"{PATH}/{own}/redrive", 200)


@pytest.mark.parametrize(
    ("record", "reason"),
    [
        (rules_record("shop", StoredRules(TenantRules(targets=("shop-*",)), NOW, "x")), "do not allow the target out"),
        (state_record("shop", StoredState(TenantState.PAUSED, NOW, "x")), "is paused"),
        (state_record("shop", StoredState(TenantState.DELETED, NOW, "x")), "was deleted"),
    ],
)
async def test_a_firing_is_not_sent_against_the_rules_of_its_tenant_whoever_asks(
    workers: Any, cluster: Any, record: Any, reason: str
) -> None:
    tokens = [await cluster.token("write", "shop"), await cluster.token("admin")]
    await cluster.tenants.write_all([record])
    letter, other = add_letter(cluster, "refused", tenant="shop"), add_letter(cluster, "refused")
    for token in tokens:
        headers = {"Authorization": f"Bearer {token}"}
        problem = await workers[0].ask("POST", f"{PATH}/{letter}/redrive", 409, headers=headers)
        assert problem["type"].endswith(":not-redrivable")
        assert reason in problem["detail"]
    assert "out" not in cluster.topics.records
    await workers[0].ask("POST", f"{PATH}/{other}/redrive", 200, headers=headers)


async def test_a_firing_waits_for_the_rules_of_tenants_to_be_read(workers: Any, cluster: Any) -> None:
    letter = add_letter(cluster, "refused")
    workers[0].tenants._topic = SimpleNamespace(is_loaded=False)
    assert "has not read the rules" in (await workers[0].ask("POST", f"{PATH}/{letter}/redrive", 503))["detail"]


async def test_a_broker_that_does_not_answer_is_a_503(workers: Any, cluster: Any) -> None:
    letter = add_letter(cluster)
    cluster.topics.write_failure = BrokerError("no answer")
    await workers[0].ask("POST", f"{PATH}/{letter}/redrive", 503)


async def test_letters_of_other_tenants_look_as_if_they_were_not_there(workers: Any, cluster: Any) -> None:
    token = await cluster.token("write", "shop")
    headers = {"Authorization": f"Bearer {token}"}
    own = add_letter(cluster, tenant="shop", headers=[("schedule-target-topic", b"out"), ("schedule-tenant", b"shop")])
    others = add_letter(cluster, "refused", tenant="default")
    page = await workers[0].ask("GET", PATH, 200, headers=headers)
    assert [each["letter"] for each in page["dead_letters"]] == [own]
    await workers[0].ask("GET", f"{PATH}?tenant=default", 404, headers=headers)
    for method, path in (("GET", f"{PATH}/{others}"), ("POST", f"{PATH}/{others}/redrive")):
        assert "no dead letter" in (await workers[0].ask(method, path, 404, headers=headers))["detail"]
    await workers[0].ask("POST", f"{PATH}/{own}/redrive", 200, headers=headers)
    assert "out" not in cluster.topics.records


async def test_a_command_whose_tenant_cannot_be_read_is_shown_to_those_who_see_all_tenants(
    workers: Any, cluster: Any
) -> None:
    """It may be of any tenant, so whoever sees the default one is shown nothing of it."""
    of_default, of_all = await cluster.token("write", "default"), await cluster.token("write")
    letter = add_letter(cluster, is_tenant_known=False)
    for token, is_shown in ((of_default, False), (of_all, True)):
        headers = {"Authorization": f"Bearer {token}"}
        page = await workers[0].ask("GET", PATH, 200, headers=headers)
        assert [each["letter"] for each in page["dead_letters"]] == [letter] * is_shown
        await workers[0].ask("GET", f"{PATH}/{letter}", 200 if is_shown else 404, headers=headers)
        await workers[0].ask("POST", f"{PATH}/{letter}/redrive", 200 if is_shown else 404, headers=headers)


async def test_a_token_for_some_tenants_redrives_nothing_that_it_may_not_send(workers: Any, cluster: Any) -> None:
    headers = {"Authorization": f"Bearer {await cluster.token('write', 'shop')}"}
    to_commands = [("schedule-tenant", b"shop"), ("schedule-target-topic", COMMANDS.encode())]
    refusals = (
        (add_letter(cluster, "refused", tenant="shop", target_topic=COMMANDS), 403),
        (add_letter(cluster, tenant="shop", headers=to_commands), 403),
        # Its dead letter says another tenant than the record does.
        (
            add_letter(cluster, tenant="shop", headers=[("schedule-tenant", b"b"), ("schedule-target-topic", b"out")]),
            404,
        ),
        (add_letter(cluster, tenant="shop", headers=[("schedule-nonsense", b"1")]), 400),
    )
    for letter, status in refusals:
        await workers[0].ask("POST", f"{PATH}/{letter}/redrive", status, headers=headers)
    history = cluster.topics.records.pop(HISTORY)
    assert [decode_history(record.value).event for log in history for record in log] == ["changed"], "the token"
    assert cluster.topics.records.keys() == {TOPIC}


async def test_the_command_line_lists_shows_and_redrives(workers: Any, cluster: Any, run: Any) -> None:
    refused, rejected = (
        add_letter(cluster, "refused", reason="\x1b[2J"),
        add_letter(cluster, tenant="shop"),
    )
    url = ("--url", workers[0].url)
    code, out, err = await run("dead-letters", "list", *url)
    assert (code, err) == (0, "2 dead letters\n")
    assert [line.split()[0] for line in out.splitlines()] == ["letter", rejected, refused]
    assert "\\x1b[2J" in out
    code, out, _ = await run("dead-letters", "list", *url, "--tenant", "shop", "--limit", "1", "--json")
    assert [each["letter"] for each in json.loads(out)["dead_letters"]] == [rejected]
    code, out, _ = await run("dead-letters", "show", refused, *url)
    assert (code, "/w== (base64)" in out, "h: 1" in out) == (0, True, True)
    code, out, _ = await run("dead-letters", "redrive", refused, rejected, *url)
    partition = partition_for(b"k", 2)
    assert (code, out.splitlines()) == (
        0,
        [
            f"{refused}: firing sent to out, partition {partition}, offset 0",
            f"{rejected}: command sent to {COMMANDS}, partition 1, offset 0",
        ],
    )
    code, out, err = await run("dead-letters", "redrive", "1-9", *url, "--json")
    assert (code, out, err) == (1, "", "Error: there is no dead letter 1-9\n")
    code, _, err = await run("dead-letters", "show", "x", *url)
    assert (code, "PARTITION-OFFSET" in err) == (2, True)
