"""Contexts: what they may hold, where they are, and what beats what."""

from __future__ import annotations

import stat
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from light_scheduler.contexts import Contexts, change_contexts, contexts_path, load_contexts, save_contexts
from light_scheduler.errors import ConfigurationError
from light_scheduler.settings import load_settings

STAGING = {"broker": "kafka://staging:9092", "url": "https://staging:6066", "tenant": "shop"}


def test_a_file_of_contexts_is_in_the_users_own_folder_and_only_its_owner_can_read_it(tmp_path: Path) -> None:
    path = contexts_path({"XDG_CONFIG_HOME": str(tmp_path)})
    save_contexts(path, Contexts().having("staging", STAGING).using("staging"))
    assert path == tmp_path / "light-scheduler" / "contexts.toml"
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert list(path.parent.iterdir()) == [path]
    assert contexts_path({"XDG_CONFIG_HOME": "relative"}) == Path.home() / ".config/light-scheduler/contexts.toml"


@pytest.mark.parametrize("text", ["plain", 'a "quoted" \\ one', "line\nbreak", "\x7f\x00", "ž"])
def test_what_is_written_is_read_again(tmp_path: Path, text: str) -> None:
    contexts = Contexts({"a.b-c": {"url": text, "app_id": "orders"}}).having("other", {}).using("other")
    save_contexts(tmp_path / "x.toml", contexts)
    assert load_contexts(tmp_path / "x.toml") == contexts
    assert load_contexts(tmp_path / "missing.toml") == Contexts()


@pytest.mark.parametrize(
    ("values", "named"),
    [
        ({"token": "lst_secret"}, "token"),
        ({"sasl_password": "x"}, "sasl_password"),
        ({"data_dir": "x"}, "data_dir"),
        ({"brokr": "x"}, "brokr"),
        ({"security_protocol": "TLS"}, "security_protocol"),
    ],
)
def test_what_is_wrong_or_a_secret_is_refused_by_name(values: dict[str, str], named: str) -> None:
    with pytest.raises(ConfigurationError, match=named):
        Contexts().having("a", values)


def test_paths_are_whole_wherever_they_were_given() -> None:
    contexts = Contexts().having("a", {"token_file": "token", "ssl_ca": "~/ca.pem"})
    assert contexts.named["a"] == {"token_file": str(Path.cwd() / "token"), "ssl_ca": str(Path.home() / "ca.pem")}


def test_a_context_that_is_not_there_is_named_with_those_that_are() -> None:
    contexts = Contexts().having("staging", STAGING)
    with pytest.raises(ConfigurationError, match=r"'stagng' is not known\. Contexts: staging"):
        contexts.get("stagng")
    with pytest.raises(ConfigurationError, match="config add"):
        Contexts().get("staging")
    assert contexts.using("staging").without("staging") == Contexts()
    assert contexts.get(None) == {}


@pytest.mark.parametrize(
    "text",
    [
        *("current = 'x'", "broker = 'x'", "contexts = 1", "[contexts]\na = 1", "= [", "current = ''", "[[contexts]]"),
        *("a = 1\na = 2", "\0", f"a = {'[' * 100_000}", "[contexts.a.b]", "[contexts.a]\nbroker = 1"),
        *("[contexts.'[bold]a']", '[contexts."\\u001b[31ma"]', "[contexts.'']", "[contexts.'a b']"),
        "[contexts.a]\noutput = 'xml'",
    ],
)
def test_a_file_that_is_wrong_is_named(tmp_path: Path, text: str) -> None:
    path = tmp_path / "contexts.toml"
    path.write_text(text)
    with pytest.raises(ConfigurationError, match=r"contexts\.toml"):
        load_contexts(path)


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("tenant", "../b"),
        ("url", "http://a:planted@b:1"),
        ("url", "a:planted@b:1"),
        ("url", "a:plan/ted@b:1"),
        ("url", "http://a:plan/ted@b:1"),
        ("url", "http:a:planted@b:1"),
        ("url", "b:1"),
        ("url", "http://"),
    ],
)
def test_what_cannot_be_worked_with_is_refused_when_it_is_changed_and_not_when_it_is_loaded(
    tmp_path: Path, name: str, value: str
) -> None:
    path = tmp_path / "contexts.toml"
    path.write_text(f"current = 'bad'\n[contexts.bad]\n{name} = '{value}'\n[contexts.good]\n")
    with pytest.raises(ConfigurationError, match=name) as refused:
        load_contexts(path).having("good", {name: value})
    assert not any(part in str(refused.value) for part in ("plan", "ted@"))
    assert load_contexts(path).using("good").without("bad") == Contexts({"good": {}}, "good")


@pytest.mark.parametrize("content", [b"current = '\xe9'", "current = 'a'".encode("utf-16")])
def test_a_file_in_another_encoding_is_refused_with_a_way_out(tmp_path: Path, content: bytes) -> None:
    path = tmp_path / "contexts.toml"
    path.write_bytes(content)
    with pytest.raises(ConfigurationError, match=r"contexts\.toml.*Correct it, or remove it"):
        load_contexts(path)


def test_a_file_with_a_byte_order_mark_is_read(tmp_path: Path) -> None:
    path = tmp_path / "contexts.toml"
    path.write_text("\ufeffcurrent = 'a'\n[contexts.a]\n", encoding="utf-8")
    assert load_contexts(path) == Contexts({"a": {}}, "a")


def test_contexts_that_processes_add_at_the_same_time_are_all_there(tmp_path: Path) -> None:
    path = tmp_path / "contexts.toml"

    def add(name: str) -> None:
        change_contexts(path, lambda contexts: contexts.having(name, STAGING))

    names = {f"context-{number}" for number in range(40)}
    with ThreadPoolExecutor(8) as pool:
        list(pool.map(add, names))
    assert load_contexts(path).named.keys() == names


def test_a_folder_that_cannot_be_written_is_named(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    with pytest.raises(
        ConfigurationError, match=r"file/contexts\.toml: cannot be written: (Not a directory|File exists)"
    ):
        change_contexts(tmp_path / "file" / "contexts.toml", lambda contexts: contexts)


def test_a_user_without_a_home_has_no_contexts(monkeypatch: pytest.MonkeyPatch) -> None:
    def no_home() -> Path:
        raise RuntimeError("Could not determine home directory.")

    monkeypatch.setattr(Path, "home", no_home)
    assert load_contexts(contexts_path({})) == Contexts()


def test_an_option_beats_the_environment_that_beats_the_context_that_beats_the_file(tmp_path: Path) -> None:
    file = tmp_path / "light-scheduler.toml"
    file.write_text("app_id = 'of-file'\nbroker = 'kafka://file:1'\nweb_port = 7000\nsecurity_protocol = 'SSL'\n")
    context = {"app_id": "of-context", "broker": "kafka://context:1", "security_protocol": "PLAINTEXT"}
    environment = {"LIGHT_SCHEDULER_BROKER": "kafka://variable:1", "LIGHT_SCHEDULER_APP_ID": "of-variable"}
    settings = load_settings({"app_id": "of-option"}, environment=environment, file=file, context=context)
    assert (settings.app_id, settings.broker, settings.web_port) == ("of-option", "kafka://variable:1", 7000)
    assert settings.security_protocol == "PLAINTEXT"


def test_a_secret_of_one_origin_takes_the_place_of_a_file_of_a_lower_one(tmp_path: Path) -> None:
    file, token = tmp_path / "light-scheduler.toml", tmp_path / "token"
    file.write_text("token = 'of-file'")
    token.write_text("of-context")
    context = {"token_file": str(token)}
    settings = load_settings(environment={}, file=file, context=context)
    assert settings.web_token is not None
    assert settings.web_token.reveal() == "of-context"
    settings = load_settings(environment={"LIGHT_SCHEDULER_TOKEN": "of-variable"}, file=file, context=context)
    assert settings.web_token is not None
    assert settings.web_token.reveal() == "of-variable"


def test_variables_of_commands_are_no_unknown_settings() -> None:
    variables = {f"LIGHT_SCHEDULER_{name}": "x" for name in ("CONTEXT", "URL", "TENANT", "OUTBOX_DATABASE")}
    assert load_settings(environment=variables) == load_settings(environment={})
