"""Commands over HTTP: what goes to the scheduler, and what its answers become."""

from __future__ import annotations

import json
from typing import Any

import pytest

from light_scheduler.client import Receipt
from light_scheduler.client.errors import ResultTimeout
from light_scheduler.errors import BrokerError, InvalidCommand
from light_scheduler.model import (
    NEVER,
    Acknowledgement,
    Awaited,
    Bounds,
    CompleteCommand,
    Cron,
    FixedRate,
    ScheduleCommand,
    Selection,
    Target,
)
from light_scheduler.web.commands.errors import TooManyWaitingError
from light_scheduler.web.commands.requested import requested
from light_scheduler.wire import partition_for

NOW = 1_800_000_000_000
HOUR = 3_600_000
SCHEDULES = "/api/v1/tenants/default/schedules"
ONCE = {"trigger": {"at": NOW + HOUR}, "target": {"topic": "out"}}


class TestSubmitting:
    async def test_a_new_schedule_is_created_with_an_id_of_its_own(self, workers: Any) -> None:
        async with workers[0].client.post(SCHEDULES, json={**ONCE, "payload": {"json": {"a": [1]}}}) as response:
            result = await response.json()
            assert response.status == 201
            location = response.headers["Location"]
        assert (result["outcome"], result["version"], result["next_due"]) == ("scheduled", 1, NOW + HOUR)
        assert location == f"{SCHEDULES}/{result['id']}"
        found = await workers[1].json(location)
        assert (found["payload"], found["target"]["key"]) == ({"text": '{"a": [1]}'}, result["id"])

    @pytest.mark.parametrize("names", [{"key": "entity"}, {"key": "entity", "id": None}])
    async def test_a_schedule_with_a_key_and_no_id_has_the_key_as_its_id(
        self, workers: Any, names: dict[str, Any]
    ) -> None:
        body = {**ONCE, **names}
        for status, outcome in ((201, "scheduled"), (200, "updated")):
            async with workers[0].client.post(SCHEDULES, json=body) as response:
                result = await response.json()
                assert (response.status, result["outcome"], result["id"]) == (status, outcome, "entity")
                assert response.headers.get("Location") == (f"{SCHEDULES}/entity" if status == 201 else None)
        assert [command.key for command in workers[0].commands.seen] == [b"entity", b"entity"]

    @pytest.mark.parametrize("key", ["", "all*"])
    async def test_a_key_that_cannot_be_an_id_needs_one(self, workers: Any, key: str) -> None:
        assert (await workers[0].ask("POST", SCHEDULES, 400, {**ONCE, "key": key}))["parameter"] == "id"
        await workers[0].ask("POST", SCHEDULES, 201, {**ONCE, "key": key, "id": "a"})

    async def test_all_that_a_command_can_say_arrives(self, workers: Any) -> None:
        body = {
            "id": "a/b",
            "key": "entity",
            "trigger": {"cron": "0 9 * * *", "timezone": "Europe/Prague", "jitter": "5m", "max_firings": 3},
            "target": {"topic": "out", "key": None, "headers": {"h": "v"}},
            "payload": {"base64": "/wA="},
            "misfire": "skip",
            "ack_timeout": "1m",
            "labels": {"team": "x, y"},
            "paused": True,
        }
        result = await workers[0].ask("POST", SCHEDULES, 201, body)
        assert (result["id"], result["next_due"]) == ("a/b", None)
        (command,) = workers[0].commands.seen
        assert isinstance(command, ScheduleCommand)
        assert (command.key, command.payload, command.headers) == (b"entity", b"\xff\x00", [("h", b"v")])
        assert command.timing == Cron("0 9 * * *", "unix", "Europe/Prague")
        assert command.bounds == Bounds(jitter=300_000, max_firings=3, misfire="skip")
        assert command.acknowledgement == Acknowledgement(60_000, 10)
        assert (command.target, command.labels, command.paused) == (Target("out", None), {"team": "x, y"}, True)
        assert (await workers[0].json(f"{SCHEDULES}/a%2Fb"))["state"] == "paused"

    async def test_an_id_again_replaces_keeps_or_conflicts(self, workers: Any) -> None:
        for body, status, outcome in (
            ({}, 201, "scheduled"),
            ({}, 200, "updated"),
            ({"on_conflict": "keep"}, 200, "kept"),
            ({"on_conflict": "fail"}, 409, "conflict"),
            ({"expected_version": 1}, 409, "conflict"),
            ({"expected_version": 2}, 200, "updated"),
        ):
            answer = await workers[0].ask("POST", SCHEDULES, status, {**ONCE, "id": "a", **body})
            assert answer.get("outcome", answer.get("result", {}).get("outcome")) == outcome, body
        assert answer["version"] == 3

    async def test_putting_is_creating_or_replacing(self, workers: Any) -> None:
        path = f"{SCHEDULES}/a%2Fb"
        assert (await workers[0].ask("PUT", path, 201, ONCE))["id"] == "a/b"
        assert (await workers[0].ask("PUT", path, 200, {**ONCE, "id": "a/b"}))["version"] == 2
        problem = await workers[0].ask("PUT", path, 400, {**ONCE, "id": "c"})
        assert problem["parameter"] == "id"

    async def test_what_is_not_to_be_waited_for_is_accepted(self, workers: Any) -> None:
        receipt = await workers[0].ask("POST", f"{SCHEDULES}?wait=false", 202, {**ONCE, "id": "a"})
        assert (receipt["id"], receipt["offset"]) == ("a", 7)


class TestControlling:
    async def test_a_schedule_is_paused_resumed_triggered_moved_and_cancelled(self, cluster: Any, workers: Any) -> None:
        worker = workers[0]
        path = f"{SCHEDULES}/a"
        await worker.ask("PUT", path, 201, {"trigger": {"every": "1h"}, "target": {"topic": "out"}})
        assert (await worker.ask("POST", f"{path}/pause", 200))["next_due"] is None
        assert (await worker.ask("POST", f"{path}/resume", 200, {"expected_version": 1}))["next_due"] == NOW + HOUR
        assert (await worker.ask("POST", f"{path}/trigger", 200))["outcome"] == "triggered"
        moved = await worker.ask("POST", f"{path}/reschedule", 200, {"trigger": {"every": "2h"}, "jitter": 0})
        assert (moved["outcome"], moved["version"]) == ("rescheduled", 2)
        assert isinstance(worker.commands.seen[-1].timing, FixedRate)
        problem = await worker.ask("DELETE", f"{path}?expected_version=1", 409)
        assert problem["result"]["version"] == 2
        assert (await worker.ask("DELETE", f"{path}?expected_version=2", 200))["outcome"] == "cancelled"
        problem = await worker.ask("DELETE", path, 404)
        assert problem["detail"] == "Tenant default has no pending schedule 'a'."

    async def test_it_is_found_wherever_it_is(self, cluster: Any, workers: Any) -> None:
        for partition in range(4):
            cluster.put(f"id/{partition}", partition=partition)
            path = f"{SCHEDULES}/id%2F{partition}"
            assert (await workers[0].ask("POST", f"{path}/pause", 200))["outcome"] == "paused"
            assert (await workers[1].ask("DELETE", path, 200))["outcome"] == "cancelled"

    @pytest.mark.parametrize("wait", ["", "?wait=false"])
    async def test_a_schedule_with_another_key_is_the_one_that_its_path_names(
        self, cluster: Any, workers: Any, wait: str
    ) -> None:
        accepted = 202 if wait else 200
        for partition in range(4):
            path = f"{SCHEDULES}/a{partition}"
            cluster.put(f"a{partition}", partition=partition)
            await workers[0].ask("PUT", path + wait, accepted, ONCE)
            await workers[0].ask("POST", SCHEDULES + wait, accepted, {**ONCE, "id": f"a{partition}"})
            await workers[1].ask("POST", f"{path}/pause{wait}", accepted)
            found = await workers[0].json(path)
            assert (found["version"], found["state"], found["source"]["partition"]) == (3, "paused", partition)
            assert len(await self.all_ids(workers[0])) == 1
            await workers[1].ask("DELETE", path + wait, accepted)
            assert await self.all_ids(workers[0]) == []

    async def all_ids(self, worker: Any) -> list[str]:
        return [each["id"] for each in (await worker.json(SCHEDULES))["schedules"]]

    async def test_nothing_is_sent_as_long_as_it_cannot_be_known_where_a_schedule_is(
        self, cluster: Any, workers: Any
    ) -> None:
        cluster.put("here", partition=2)
        await workers[1].stop()
        for method, path, body in (
            ("PUT", "/a", ONCE), ("POST", "", {**ONCE, "id": "a"}), ("PUT", "/a?wait=false", ONCE),
            ("DELETE", "/a?wait=false", None), ("POST", "/a/trigger", None),
        ):  # fmt: skip
            problem = await workers[0].ask(method, SCHEDULES + path, 503, body)
            assert {each["partition"] for each in problem["missing"]} == {1, 3}
        assert workers[0].commands.seen == []
        # What is found, has a key, or gets a new id needs nobody else.
        await workers[0].ask("PUT", f"{SCHEDULES}/here", 200, ONCE)
        await workers[0].ask("PUT", f"{SCHEDULES}/a", 201, {**ONCE, "key": "a"})
        await workers[0].ask("POST", SCHEDULES, 201, ONCE)

    async def test_a_schedule_that_was_accepted_on_the_way_is_found(
        self, cluster: Any, workers: Any, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        ask, commands = workers[0].commands.ask, workers[0].commands
        elsewhere = (partition_for(b"a", 4) + 1) % 4

        async def late(make: Any, timeout: float) -> Any:
            monkeypatch.setattr(commands, "ask", ask)
            result = await ask(make, timeout)
            cluster.put("a", partition=elsewhere)
            return result

        monkeypatch.setattr(commands, "ask", late)
        assert (await workers[0].ask("POST", f"{SCHEDULES}/a/trigger", 200))["partition"] == elsewhere

    async def test_with_its_key_it_is_looked_for_there_only(self, cluster: Any, workers: Any) -> None:
        cluster.put("a", partition=3)
        await workers[0].ask("DELETE", f"{SCHEDULES}/a?key=a", 404)
        await workers[0].ask("POST", f"{SCHEDULES}/a/pause", 404, {"key": "a"})

    async def test_that_it_is_nowhere_is_said_only_if_all_partitions_were_asked(
        self, cluster: Any, workers: Any
    ) -> None:
        await workers[1].stop()
        problem = await workers[0].ask("DELETE", f"{SCHEDULES}/a", 503)
        assert {each["partition"] for each in problem["missing"]} == {1, 3}

    async def test_a_firing_is_completed(self, cluster: Any, workers: Any) -> None:
        cluster.put(
            "a", due=NEVER, acknowledgement=Acknowledgement(1_000, 3),
            progress={"awaited": (Awaited(NOW, 1, 2, NOW + 5, NOW),)},
        )  # fmt: skip
        path = f"{SCHEDULES}/a/complete"
        problem = await workers[0].ask("POST", path, 409, {"firing_id": f"a@{NOW}", "attempt": 1})
        assert "the latest one is 2" in problem["detail"]
        problem = await workers[0].ask("POST", path, 404, {"firing_id": f"a@{NOW + 1}", "attempt": 2})
        assert problem["detail"] == "no such firing of it is waiting for completion"
        body = {"firing_id": f"a@{NOW}", "attempt": 2, "completion": "failure"}
        assert (await workers[0].ask("POST", path, 200, body))["outcome"] == "completed"
        command = workers[0].commands.seen[-1]
        assert isinstance(command, CompleteCommand)
        assert (command.firing_due, command.attempt, command.succeeded) == (NOW, 2, False)

    async def test_a_firing_is_extended(self, cluster: Any, workers: Any) -> None:
        cluster.put(
            "a", due=NEVER, acknowledgement=Acknowledgement(1_000, 3),
            progress={"awaited": (Awaited(NOW, 1, 2, NOW + 5, NOW),)},
        )  # fmt: skip
        path, body = f"{SCHEDULES}/a/extend", {"firing_id": f"a@{NOW}", "attempt": 2}
        assert (await workers[0].ask("POST", path, 200, body))["outcome"] == "updated"
        assert (await workers[0].json(f"{SCHEDULES}/a"))["awaiting"][0]["until"] == NOW + 1_000
        await workers[0].ask("POST", path, 200, {**body, "ack_timeout": "1h"})
        assert (await workers[0].json(f"{SCHEDULES}/a"))["awaiting"][0]["until"] == NOW + HOUR
        await workers[0].ask("POST", path, 409, {**body, "attempt": 1})
        await workers[0].ask("POST", path, 404, {**body, "firing_id": f"a@{NOW + 1}"})


class TestWhatIsWrong:
    @pytest.mark.parametrize(
        ("method", "path", "body", "parameter", "reason"),
        [
            ("POST", "", b"", "target.topic", "is required"),
            ("POST", "", b"nonsense", "body", "is not JSON"),
            ("POST", "", [], "body", "must be a JSON object"),
            ("POST", "", {**ONCE, "trigger": {"at": 5}}, "trigger.at", "looks like seconds"),
            ("POST", "", {**ONCE, "trigger": {"cron": "61 * * * *"}}, "trigger.cron", "61 is not in 0-59"),
            ("POST", "", {**ONCE, "trigger": {"at": NOW, "every": "1m"}}, "trigger.every", "one trigger"),
            ("POST", "", {**ONCE, "trigger": {"evry": "1m"}}, "trigger.evry", "did you mean trigger.every?"),
            ("POST", "", {**ONCE, "command": "cancel"}, "command", "must be 'schedule'"),
            ("POST", "", {**ONCE, "tenant": "other"}, "tenant", "must be 'default'"),
            ("POST", "", {**ONCE, "reply_topic": "t"}, "reply_topic", "the response is the result"),
            ("POST", "", {**ONCE, "id": "a*"}, "id", "must not end in *"),
            ("POST", "", {**ONCE, "payload": {"text": "x" * 1_001}}, "payload", "at most 1000 are allowed"),
            ("POST", "?timeout=soon", ONCE, "timeout", "is not a duration"),
            ("POST", "?timeout=10", ONCE, "timeout", "'10' has no unit: write 10ms, 10s"),
            ("DELETE", "/a?timeout=10", None, "timeout", "has no unit"),
            ("POST", "?timeout=2m", ONCE, "timeout", "must be 1ms to 60s"),
            ("POST", "?patience=1", ONCE, "patience", "is not known. Parameters: timeout, wait"),
            ("PUT", "/a*", ONCE, "id", "this path is for one schedule"),
            ("POST", "/a/pause", {"ttl": 5}, "ttl", "has no meaning for a pause"),
            ("POST", "/*/pause", {}, "id", "this path is for one schedule"),
            ("POST", "/a/reschedule", {}, "trigger.at", "is required"),
            ("POST", "/a/complete", {}, "firing_id", "is required"),
            ("POST", "/a/extend", {}, "firing_id", "is required"),
            ("POST", "/a/extend", {"completion": "success"}, "completion", "has no meaning for an extend"),
            ("POST", "/a/complete", {"firing_id": "b@5", "attempt": 1}, "firing_id", "is not a firing of schedule a"),
            ("DELETE", "/a?expected_version=0", None, "expected_version", "is not a whole number"),
            ("DELETE", "/%00", None, "id", "control characters"),
        ],
    )
    async def test_it_is_refused_by_its_name(
        self, workers: Any, method: str, path: str, body: Any, parameter: str, reason: str
    ) -> None:
        problem = await workers[0].ask(method, SCHEDULES + path, 400, body)
        assert problem["parameter"] == parameter
        assert reason in problem["detail"]
        assert problem["detail"].startswith(f"{parameter}: ")

    async def test_a_tenant_that_is_none_is_refused(self, workers: Any) -> None:
        assert (await workers[0].ask("POST", "/api/v1/tenants/-/schedules", 400, ONCE))["parameter"] == "tenant"

    @pytest.mark.parametrize(
        ("failure", "status", "detail"),
        [
            (TooManyWaitingError(), 429, "Try again"),
            (BrokerError("gone"), 503, "may or may not have been sent: gone"),
            (ResultTimeout("no answer", Receipt("default", "a", 3, 17)), 504, "no answer"),
        ],
    )
    async def test_what_is_known_of_a_failure_is_told(
        self, workers: Any, failure: Exception, status: int, detail: str
    ) -> None:
        workers[0].commands.failure = failure
        for method, path in (("POST", SCHEDULES), ("PUT", f"{SCHEDULES}/a"), ("POST", f"{SCHEDULES}/a/reschedule")):
            problem = await workers[0].ask(method, path, status, ONCE if "re" not in path else {"trigger": {"at": NOW}})
            assert detail in problem["detail"]
            if status == 504:
                assert problem["sent"] == {"tenant": "default", "id": "a", "partition": 3, "offset": 17}

    @pytest.mark.parametrize(
        ("headers", "status"),
        [
            ({}, 201),
            ({"Sec-Fetch-Site": "same-origin"}, 201),
            ({"Sec-Fetch-Site": "none"}, 201),
            ({"Sec-Fetch-Site": "cross-site"}, 403),
            ({"Sec-Fetch-Site": "same-site"}, 403),
            ({"Origin": "https://elsewhere.example"}, 403),
            ({"Origin": "null"}, 403),
        ],
    )
    async def test_pages_of_other_sites_change_nothing(
        self, workers: Any, headers: dict[str, str], status: int
    ) -> None:
        await workers[0].ask("POST", SCHEDULES, status, ONCE, headers=headers)
        assert len(workers[0].commands.seen) == (status == 201)

    async def test_its_own_pages_may(self, workers: Any) -> None:
        await workers[0].ask("POST", SCHEDULES, 201, ONCE, headers={"Origin": workers[0].url})


class TestMany:
    @pytest.mark.parametrize("command", ["cancel", "pause", "resume", "trigger"])
    async def test_what_an_id_with_an_asterisk_and_labels_select_is_answered_with_its_number(
        self, workers: Any, command: str
    ) -> None:
        workers[0].commands.changed = 1_742
        body = {"id": "order-*", "labels": {"team": "x, y"}}
        result = await workers[0].ask("POST", f"/api/v1/tenants/acme/schedules:{command}", 200, body)
        assert (result["id"], result["count"]) == ("order-*", 1_742)
        (sent,) = workers[0].commands.seen
        assert (sent.name, sent.tenant, sent.selection) == (command, "acme", Selection("order-", {"team": "x, y"}))

    async def test_a_time_rule_is_given_to_many(self, workers: Any) -> None:
        body = {"id": "*", "trigger": {"every": "1h"}}
        assert (await workers[0].ask("POST", f"{SCHEDULES}:reschedule", 200, body))["count"] == 0
        (sent,) = workers[0].commands.seen
        assert (sent.timing, sent.selection) == (FixedRate(HOUR), Selection())

    @pytest.mark.parametrize(
        ("command", "body", "parameter"),
        [
            ("cancel", {}, "id"),
            ("cancel", {"labels": {"a": "b"}}, "labels"),
            ("cancel", {"id": "a"}, "id"),
            ("cancel", {"id": "*", "expected_version": 1}, "expected_version"),
            ("cancel", {"id": "*", "command": "pause"}, "command"),
            ("cancel", {"id": "*", "tenant": "other"}, "tenant"),
            ("pause", {"id": "*", "trigger": {"after": 1}}, "trigger.after"),
            ("reschedule", {"id": "*"}, "trigger.at"),
        ],
    )
    async def test_what_does_not_say_which_many_is_a_bad_request(
        self, workers: Any, command: str, body: Any, parameter: str
    ) -> None:
        problem = await workers[0].ask("POST", f"{SCHEDULES}:{command}", 400, body)
        assert problem["parameter"] == parameter
        assert workers[0].commands.seen == []

    async def test_there_is_no_such_command_for_many(self, workers: Any) -> None:
        await workers[0].ask("POST", f"{SCHEDULES}:complete", 404, {"id": "*"})


@pytest.mark.parametrize("names", [{}, {"id": None}, {"key": None}, {"id": None, "key": None}])
def test_no_id_is_made_up_for_a_schedule_without_id_and_key(names: dict[str, None]) -> None:
    with pytest.raises(InvalidCommand, match="id: is required"):
        requested(json.dumps({**names, **ONCE}).encode(), {"command": "schedule"}, lambda _: [])
