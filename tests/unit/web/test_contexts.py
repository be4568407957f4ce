"""Commands in a context: which worker they ask, as whom, and about which tenant."""

from __future__ import annotations

import asyncio
import json
import socket
import time
from pathlib import Path
from typing import Any

import pytest
from click.shell_completion import ShellComplete

from light_scheduler.cli import cli, completed_values
from light_scheduler.model import Requester


@pytest.fixture(autouse=True)
def home(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Path:
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path))
    monkeypatch.chdir(tmp_path)
    return tmp_path


async def listed(run: Any, *arguments: str) -> list[str]:
    code, out, err = await run("list", "--json", *arguments)
    assert code == 0, err
    return [f"{each['tenant']}/{each['id']}" for each in json.loads(out)["schedules"]]


async def test_a_context_names_worker_token_and_tenant_and_an_option_beats_it(
    cluster: Any, run: Any, home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (worker,) = await cluster.start([0])
    for tenant in ("default", "shop", "other"):
        cluster.put("a", tenant=tenant)
    (home / "token").write_text(await cluster.token("read"))
    values = ("--url", str(worker.client.make_url("")), "--tenant", "shop", "--token-file", "token")
    assert (await run("config", "add", "here", *values))[0] == 0
    assert (await run("config", "add", "nowhere", "--url", "http://127.0.0.1:1"))[0] == 0
    assert await listed(run) == ["shop/a"]
    assert await listed(run, "--tenant", "other") == ["other/a"]
    code, out, _ = await run("get", "a", "--json")
    assert (code, json.loads(out)["tenant"]) == (0, "shop")
    monkeypatch.setenv("LIGHT_SCHEDULER_TENANT", "default")
    assert await listed(run) == ["default/a"]
    assert await listed(run, "--tenant", "shop") == ["shop/a"]
    assert (await run("list", "--context", "nowhere"))[0] == 1
    assert (await run("config", "use", "nowhere"))[0] == 0
    assert (await run("list"))[0] == 1
    assert await listed(run, "--context", "here") == ["default/a"]
    monkeypatch.setenv("LIGHT_SCHEDULER_CONTEXT", "here")
    assert await listed(run) == ["default/a"]


async def test_a_worker_named_by_an_option_or_the_environment_beats_that_of_the_context(
    cluster: Any, run: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    (worker,) = await cluster.start([0])
    cluster.put("a")
    port = str(worker.client.port)
    await run("config", "add", "nowhere", "--url", "http://127.0.0.1:1", "--tenant", "default")
    assert (await run("list"))[0] == 1
    assert await listed(run, "--web-port", port) == ["default/a"]
    assert await asyncio.to_thread(completed, "get", "--web-port", port, "") == ["a"]
    monkeypatch.setenv("LIGHT_SCHEDULER_WEB_PORT", port)
    assert await listed(run) == ["default/a"]
    assert await asyncio.to_thread(completed, "get", "") == ["a"]
    assert (await run("list", "--url", "http://127.0.0.1:1"))[0] == 1


@pytest.mark.parametrize("current", ['"gone"', '["live"]'])
async def test_a_current_context_that_is_not_there_is_named_and_can_be_left(run: Any, home: Path, current: str) -> None:
    await run("config", "add", "live", "--broker", "kafka://a:1")
    file = home / "light-scheduler/contexts.toml"
    file.write_text(file.read_text().replace('current = "live"', f"current = {current}"))
    code, _, err = await run("list")
    assert (code, str(file) in err) == (2, True)
    if current == '["live"]':
        return
    assert "'gone' is not known. Contexts: live" in err
    assert (await run("config", "use", "live"))[0] == 0
    assert (await run("config", "show"))[1].startswith("live (in use)")


async def test_contexts_are_listed_shown_changed_and_removed_without_their_secrets(run: Any, home: Path) -> None:
    (home / "token").write_text("lst_of_nobody")
    await run("config", "add", "staging", "--broker", "kafka://a:1", "--token-file", "token", "--tenant", "shop")
    await run("config", "add", "live", "--broker", "kafka://b:1")
    code, out, _ = await run("config", "list")
    assert [line.split()[:2] for line in out.splitlines()[1:]] == [["live", "kafka://b:1"], ["*", "staging"]]
    assert (await run("config", "set", "staging", "--tenant", "billing", "--unset", "broker"))[0] == 0
    code, out, _ = await run("config", "show", "--json")
    values = {"token_file": str(home / "token"), "tenant": "billing"}
    assert json.loads(out) == {"name": "staging", "current": True, "values": values}
    code, out, _ = await run("config", "show", "staging")
    assert "lst_of_nobody" not in out
    assert "tenant: billing" in out
    await run("config", "remove", "staging")
    code, out, err = await run("config", "show")
    assert (code, out) == (2, "")
    assert "config use" in err
    code, _, err = await run("list", "--context", "staging")
    assert code == 2
    assert "'staging' is not known. Contexts: live" in err


@pytest.mark.parametrize(
    ("name", "value"), [("url", "http://me:planted@a:1"), ("url", "me:planted@a:1"), ("tenant", "../b")]
)
async def test_a_context_of_an_earlier_version_holds_up_itself_alone(
    run: Any, home: Path, name: str, value: str
) -> None:
    await run("config", "add", "live", "--broker", "kafka://a:1")
    file = home / "light-scheduler/contexts.toml"
    file.write_text(file.read_text() + f"[contexts.old]\n{name} = '{value}'\n")
    assert (await run("config", "set", "live", "--url", "http://127.0.0.1:1"))[0] == 0
    assert (await run("list"))[0] == 1, "nobody listens there"
    assert (await run("config", "use", "old"))[0] == 0
    code, _, err = await run("list")
    assert code == 2
    assert f"{file}: setting {name}: " in err
    assert f"config set old --{name} VALUE" in err
    shown = [(await run("config", *words))[1] for words in (["list"], ["list", "--json"], ["show"])]
    assert all("old" in each for each in shown)
    assert "planted" not in "".join((err, *shown))
    assert (await run("config", "set", "old", "--broker", "kafka://b:1"))[0] == 2
    assert (await run("config", "set", "old", "--unset", name))[0] == 0
    file.write_text(file.read_text() + f"[contexts.older]\n{name} = '{value}'\n")
    assert (await run("config", "remove", "older"))[0] == 0
    assert (await run("config", "use", "live"))[0] == 0


@pytest.mark.parametrize(
    "arguments",
    [
        ("add", "live", "--broker", "kafka://b:1"),
        ("add", "-x"),
        ("add", "a b"),
        ("add", "a", "--tenant", "a/b"),
        ("add", "a", "--security-protocol", "TLS"),
        ("add", "a", "--url", "127.0.0.1:6066"),
        ("add", "a", "--url", "http://[::1"),
        ("add", "a", "--url", "me:planted@127.0.0.1:6066"),
        ("add", "a", "--url", "http://me:planted@127.0.0.1:6066"),
        ("use",),
        ("use", "other"),
        ("set", "other", "--tenant", "a"),
    ],
)
async def test_wrong_use_changes_nothing(run: Any, home: Path, arguments: tuple[str, ...]) -> None:
    await run("config", "add", "live", "--broker", "kafka://a:1")
    before = (home / "light-scheduler/contexts.toml").read_text()
    code, out, err = await run("config", *arguments)
    assert code == 2
    assert "planted" not in out + err
    assert (home / "light-scheduler/contexts.toml").read_text() == before


def completed(*line: str) -> list[str]:
    *arguments, incomplete = line
    completion = ShellComplete(cli, {}, "light-scheduler", "_LIGHT_SCHEDULER_COMPLETE")
    return sorted(item.value for item in completion.get_completions(arguments, incomplete))


async def test_a_shell_completes_ids_and_tenants_as_the_worker_of_the_context_knows_them(
    cluster: Any, run: Any, home: Path
) -> None:
    (worker,) = await cluster.start([0])
    for id, tenant in (("order-1", "shop"), ("order-2", "shop"), ("report", "shop"), ("order-3", "default")):
        cluster.put(id, tenant=tenant)
    (home / "token").write_text(await cluster.token("read", "shop", "other"))
    values = ("--url", str(worker.client.make_url("")), "--tenant", "shop", "--token-file", "token")
    await run("config", "add", "here", *values)
    for command in ("get", "history", "why", "cancel", "pause", "resume", "trigger", "reschedule"):
        assert await asyncio.to_thread(completed, command, "ord") == ["order-1", "order-2"], command
    assert await asyncio.to_thread(completed, "list", "--tenant", "") == ["other", "shop"]
    assert await asyncio.to_thread(completed, "get", "--tenant", "s") == ["shop"]
    assert await asyncio.to_thread(completed, "get", "--tenant", "other", "ord") == []
    (home / "token").write_text(await cluster.token("admin"))
    await worker.tenants.set_rules("acme", lambda rules: rules, by=Requester("test", ""))
    assert await asyncio.to_thread(completed, "tenants", "show", "") == ["acme", "default"]
    assert await asyncio.to_thread(completed, "get", "--tenant", "default", "ord") == ["order-3"]


@pytest.mark.parametrize(
    "id",
    [
        *(
            "a$(touch x)",
            "a`id`",
            "a;id",
            "a&id",
            "a|id",
            "a>x",
            "a b",
            "a'b",
            'a"b',
            "a\\b",
            "a*",
            "a?",
            "a[b]",
            "a{b,c}",
        ),
        *("a,b", "a!b", "a#b", "a~", "a\u2028b", "a\u202eb"),
    ],
)
async def test_an_id_that_a_shell_would_interpret_is_not_suggested(cluster: Any, run: Any, home: Path, id: str) -> None:
    (worker,) = await cluster.start([0])
    for each in (id, "a-1", "až/2:3@4.5_6+7%8=9"):
        cluster.put(each)
    await run("config", "add", "here", "--url", str(worker.client.make_url("")))
    assert await asyncio.to_thread(completed, "get", "a") == ["a-1", "až/2:3@4.5_6+7%8=9"]


async def test_an_id_that_looks_like_an_option_is_not_suggested(cluster: Any, run: Any, home: Path) -> None:
    (worker,) = await cluster.start([0])
    for id in ("--all", "~root", "=ls", "a"):
        cluster.put(id)
    await run("config", "add", "here", "--url", str(worker.client.make_url("")))
    assert await asyncio.to_thread(completed, "get", "") == ["a"]


async def test_a_shell_is_told_nothing_where_nothing_can_be_known(
    run: Any, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def taken() -> float:
        begun = time.monotonic()
        assert completed("get", "--url", url, "a") == []
        return time.monotonic() - begun

    monkeypatch.setattr(completed_values, "TIMEOUT_S", 0.2)
    with socket.create_server(("127.0.0.1", 0)) as silent:
        url = f"http://127.0.0.1:{silent.getsockname()[1]}"
        assert await asyncio.to_thread(taken) < 5  # an HTTP client alone would wait for 10 s
    url = "no url"
    await asyncio.to_thread(taken)
    monkeypatch.setenv("LIGHT_SCHEDULER_CONTEXT", "missing")
    await asyncio.to_thread(taken)
    assert capsys.readouterr() == ("", "")


@pytest.mark.parametrize(
    "line", [("list", "--context"), ("config", "use"), ("config", "show"), ("config", "set"), ("config", "remove")]
)
async def test_a_shell_completes_contexts(run: Any, home: Path, line: tuple[str, ...]) -> None:
    assert completed(*line, "") == []
    for name in ("live", "local", "staging"):
        await run("config", "add", name)
    assert completed(*line, "l") == ["live", "local"]
    (home / "light-scheduler/contexts.toml").write_text("contexts = 3")
    assert completed(*line, "") == []


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
async def test_the_script_of_a_shell_calls_the_command(run: Any, shell: str) -> None:
    code, script, _ = await run("completion", shell)
    assert code == 0
    assert f"_LIGHT_SCHEDULER_COMPLETE={shell}_complete" in script


async def test_a_worker_is_in_no_context(home: Path, run: Any) -> None:
    await run("config", "add", "live", "--app-id", "of-live")
    for command in ("worker", "up"):
        assert "--context" not in (await run(command, "--help"))[1]
    assert "--context" in (await run("topics", "check", "--help"))[1]
