"""`light-scheduler get` and `list` against running workers."""

from __future__ import annotations

import json
import shlex
from typing import Any

import pytest

from light_scheduler.cli.schedule_output import instant_text, relative, shown, trigger_text
from light_scheduler.durations import distance
from light_scheduler.model import (
    NEVER,
    Acknowledgement,
    Awaited,
    Backoff,
    Bounds,
    Cron,
    Entry,
    FixedDelay,
    FixedRate,
    Once,
    Progress,
    Schedule,
    Target,
    Trigger,
)
from light_scheduler.settings import Settings
from light_scheduler.web.forms.documents import summary

NOW = 1_800_000_000_000


async def test_get_prints_a_schedule_as_json(cluster: Any, workers: Any, run: Any) -> None:
    cluster.put("orders/../7", partition=1, due=NOW)
    code, out, _ = await run("get", "orders/../7", "--url", workers[0].url, "--json")
    assert code == 0
    assert json.loads(out)["id"] == "orders/../7"


async def test_get_shows_what_will_be_delivered(cluster: Any, workers: Any, run: Any) -> None:
    cluster.put("a", partition=1, due=NOW, payload=b"[red]hi\x1b[2J", headers=[("h", b"v"), ("n", None)])
    code, out, _ = await run("get", "a", "--url", workers[0].url + "/")
    assert code == 0
    assert "2027-01-15T08:00:00.000Z (" in out
    assert "[red]hi\\x1b[2J" in out
    assert "h: v" in out
    assert "n: (null)" in out


async def test_get_of_another_tenant(cluster: Any, workers: Any, run: Any) -> None:
    cluster.put("a", tenant="other")
    assert (await run("get", "a", "--url", workers[0].url))[0] == 1
    assert (await run("get", "a", "--tenant", "other", "--url", workers[0].url))[0] == 0


async def test_get_of_what_is_not_there_fails_and_says_so(workers: Any, run: Any) -> None:
    code, out, err = await run("get", "nothing", "--url", workers[0].url, "--json")
    assert (code, out) == (1, "")
    assert err == (
        "Error: tenant default has no pending schedule 'nothing'. The history says what happened to it: "
        "light-scheduler why --tenant default -- nothing\n"
    )


async def test_what_get_advises_is_a_command_about_the_same_schedule(workers: Any, run: Any) -> None:
    words = ("--tenant", "shop", "--url", workers[0].url)
    _, _, err = await run("get", *words, "--", "-it's gone")
    command = shlex.split(err.rpartition(": ")[2])
    code, out, _ = await run(*command[1:2], "--json", "--url", workers[0].url, *command[2:])
    assert code == 1
    assert {"tenant": "shop", "id": "-it's gone", "state": "unknown"}.items() <= json.loads(out).items()


@pytest.mark.parametrize("command", [["get", "a"], ["list"]])
async def test_without_a_worker_they_fail_and_name_the_address(run: Any, command: list[str]) -> None:
    code, out, err = await run(*command, "--url", "http://127.0.0.1:1")
    assert (code, out) == (1, "")
    assert "cannot reach a worker at http://127.0.0.1:1" in err


@pytest.mark.parametrize("url", ["nonsense", "http://127.0.0.1:port"])
async def test_an_address_that_is_none_is_an_error(run: Any, url: str) -> None:
    code, _, err = await run("list", "--url", url)
    assert code == 1
    assert url in err


async def test_an_incomplete_answer_is_an_error_that_says_what_is_missing(workers: Any, run: Any) -> None:
    await workers[1].stop()
    code, _, err = await run("list", "--url", workers[0].url)
    assert code == 1
    assert f"light-scheduler-commands[1] {workers[1].url}: cannot be reached" in err


async def test_list_prints_one_json_document(cluster: Any, workers: Any, run: Any) -> None:
    for number in range(5):
        cluster.put(f"id-{number}", partition=number % 4, due=NOW - number)
    code, out, _ = await run("list", "--url", workers[0].url, "--sort", "due", "--json")
    page = json.loads(out)
    assert code == 0
    assert [schedule["id"] for schedule in page["schedules"]] == ["id-4", "id-3", "id-2", "id-1", "id-0"]
    assert (page["next_cursor"], page["total"]) == (None, 5)


async def test_list_goes_on_from_a_cursor(cluster: Any, workers: Any, run: Any) -> None:
    for number in range(5):
        cluster.put(f"id-{number}", partition=number % 4)
    _, out, _ = await run("list", "--url", workers[0].url, "--limit", "2", "--json")
    cursor = json.loads(out)["next_cursor"]
    _, out, _ = await run("list", "--url", workers[0].url, "--all", "--json", "--cursor", cursor)
    page = json.loads(out)
    assert [schedule["id"] for schedule in page["schedules"]] == ["id-2", "id-3", "id-4"]
    assert (page["next_cursor"], page["total"]) == (None, 5)


async def test_list_all_goes_beyond_the_longest_page(cluster: Any, workers: Any, run: Any) -> None:
    for number in range(1_100):
        cluster.put(f"id-{number}", partition=number % 4)
    _, out, _ = await run("list", "--url", workers[0].url, "--all", "--json")
    assert len({schedule["id"] for schedule in json.loads(out)["schedules"]}) == 1_100


async def test_list_filters(cluster: Any, workers: Any, run: Any) -> None:
    cluster.put("a1", labels={"team": "x", "kind": "y"}, target="mail", due=NOW)
    cluster.put("a2", labels={"team": "x", "kind": "y"}, target="mail", due=NOW)
    cluster.put("a-1", labels={"team": "x"}, target="mail", due=NOW)
    _, out, _ = await run(
        *("list", "--url", workers[0].url, "--json", "--id-prefix", "a", "--target-topic", "mail"),
        *("--id-contains", "1"),
        *("--label", "team=x", "--label", "kind=y", "--due-from", str(NOW), "--due-to", str(NOW + 1)),
        *("--state", "pending"),
    )
    assert [schedule["id"] for schedule in json.loads(out)["schedules"]] == ["a1"]


async def test_list_shows_a_table(cluster: Any, workers: Any, run: Any) -> None:
    cluster.put("a", due=NOW, labels={"team": "x"})
    cluster.put("b", due=NOW)
    code, out, err = await run("list", "--url", workers[0].url, "--limit", "1")
    assert code == 0
    header, row = out.splitlines()
    assert header.split() == ["id", "state", "next", "due", "(UTC)", "due", "trigger", "version", "target", "labels"]
    assert row.split()[:3] == ["a", "pending", "2027-01-15T08:00:00.000Z"]
    assert row.split()[-3:] == ["1", "out", "team=x"]
    assert err.startswith("1 of 2 schedules; there may be more")
    _, _, err = await run("list", "--url", workers[0].url, "--limit", "1", "--id-prefix", "")
    assert err.startswith("1 of 2 schedules; there may be more")
    _, _, err = await run("list", "--url", workers[0].url, "--limit", "1", "--due-from", str(NOW))
    assert err.startswith("1 schedule; there may be more")
    _, _, err = await run("list", "--url", workers[0].url)
    assert err == "2 schedules\n"


async def test_list_keeps_each_schedule_on_one_line(cluster: Any, workers: Any, run: Any) -> None:
    cluster.put("i" * 200, target="t" * 200)
    _, out, _ = await run("list", "--url", workers[0].url)
    assert len(out.splitlines()) == 2
    assert "i" * 200 in out
    assert "t" * 200 in out


async def test_list_tells_how_and_when_series_go_on(cluster: Any, workers: Any, run: Any) -> None:
    cluster.put("a", trigger=Cron("0 9 * * *", "unix", "Europe/Prague"))
    cluster.put("b", trigger=FixedRate(300_000, 0), progress={"paused": True})
    cluster.put("c", due=NEVER, trigger=FixedDelay(5_000), progress={"awaited": (Awaited(NOW, 1, 1, NOW + 5, NOW),)})
    code, out, _ = await run("list", "--url", workers[0].url)
    rows = [line.split() for line in out.splitlines()[1:]]
    assert code == 0
    assert rows[0][:3] == ["a", "pending", "2027-01-15T08:00:00.000Z"]
    assert "cron 0 9 * * * (Europe/Prague)" in out
    assert rows[1] == ["b", "paused", "every", "5m", "1", "out"]
    assert rows[2] == ["c", "awaiting", "every", "5s", "after", "completion", "1", "out"]
    for state, id in (("pending", "a"), ("paused", "b"), ("awaiting", "c")):
        _, out, _ = await run("list", "--url", workers[0].url, "--state", state, "--json")
        assert [schedule["id"] for schedule in json.loads(out)["schedules"]] == [id]


async def test_get_tells_all_of_a_series(cluster: Any, workers: Any, run: Any) -> None:
    cluster.put(
        "a",
        due=NEVER,
        trigger=FixedDelay(5_000),
        bounds=Bounds(NOW, NOW + 86_400_000, 10, 2_000, 1_000, "skip", 60_000),
        acknowledgement=Acknowledgement(90_000, 3, "queue"),
        progress={"awaited": (Awaited(NOW, 4, 2, NOW + 5, NOW),), "sequence": 5},
    )
    _, out, _ = await run("get", "a", "--url", workers[0].url)
    lines = dict(line.split("  ", 1) for line in out.splitlines())
    told = {name: value.strip() for name, value in lines.items()}
    assert told["state"] == "awaiting"
    assert told["trigger"] == "every 5s after completion"
    assert told["bounds"] == (
        "from 2027-01-15T08:00:00.000Z, until 2027-01-16T08:00:00.000Z, firings at most: 10, jitter 2s, window 1s"
    )
    assert told["misfire"] == "skip, grace 1m"
    assert told["next firing"] == "5, attempt 1"
    assert told["completion"] == "within 90s, 3 attempts, overlap queue"
    assert told["awaiting"].startswith(f"a@{NOW} attempt 2, again in ")


@pytest.mark.parametrize(
    ("trigger", "text"),
    [
        (Once(NOW), "once"),
        (FixedRate(90_000, 0), "every 90s"),
        (FixedDelay(90_000), "every 90s after completion"),
        (Cron("@daily"), "cron @daily"),
        (Cron("0 0 9 * * ?", "quartz"), "cron 0 0 9 * * ? (quartz)"),
        (Cron("0 0 9 * * ?", "quartz", "Asia/Tokyo"), "cron 0 0 9 * * ? (quartz, Asia/Tokyo)"),
        (Backoff((1_000, 60_000)), "backoff 1s,1m"),
        (Backoff((), 1_000, 2.5), "backoff initial=1s factor=2.5"),
        (Backoff((), 1_000, 2.0, 60_000, 5, 0.5), "backoff initial=1s factor=2 max=1m attempts=5 jitter=0.5"),
    ],
)
def test_a_trigger_is_told_in_a_few_words(trigger: Trigger, text: str) -> None:
    schedule = Schedule("default", "a", 1, trigger, Target("out"), b"", [], 0, 0, NOW)
    assert trigger_text(summary(Entry(schedule, Progress(NOW, 0)), "commands").trigger) == text


async def test_a_parameter_that_the_worker_refuses_is_wrong_use(workers: Any, run: Any) -> None:
    code, _, err = await run("list", "--url", workers[0].url, "--due-from", "tomorrow")
    assert code == 2
    assert "Invalid value for --due-from: 'tomorrow' is not an instant" in err


@pytest.mark.parametrize(
    ("ms", "text"),
    [
        (0, "now"),
        (7_500_000, "in 2h 5m"),
        (7_205_000, "in 2h"),
        (-3_020, "3s 20ms ago"),
        (90_061_000, "in 1d 1h"),
        (20, "in 20ms"),
    ],
)
def test_distances_are_told_by_their_two_largest_units(ms: int, text: str) -> None:
    assert relative(ms) == text
    assert instant_text(NOW + ms, NOW).endswith(f"Z ({text})")
    assert distance(0) == "0ms"


def test_what_a_terminal_would_obey_is_shown_as_an_escape() -> None:
    assert shown("a\x1b[31m\r\n[b]é").plain == "a\\x1b[31m\\r\n[b]é"


def test_the_default_address_is_that_of_the_settings() -> None:
    assert Settings(web_host="::1", web_port=1234).web_url == "http://[::1]:1234"


async def test_a_list_of_all_is_a_stream_of_lines(cluster: Any, workers: Any, run: Any) -> None:
    for number in range(1_200):
        cluster.put(f"id-{number:04}", partition=number % 4)
    url = ("--url", workers[0].url)
    code, out, err = await run("list", *url, "--all", "--jsonl")
    assert (code, err) == (0, "")
    assert [json.loads(line)["id"] for line in out.splitlines()] == [f"id-{number:04}" for number in range(1_200)]
    code, out, err = await run("list", *url, "--limit", "2", "--jsonl")
    assert (code, len(out.splitlines())) == (0, 2)
    assert "--cursor" in err
    assert (await run("list", *url, "--json", "--jsonl"))[0] == 2
