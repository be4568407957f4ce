"""Settings: what the values of each may look like."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import fields
from pathlib import Path
from typing import Any

import pytest

from light_scheduler.errors import ConfigurationError
from light_scheduler.model import Shares
from light_scheduler.settings import Settings, load_settings
from light_scheduler.settings.values import CommandsTopic

from .test_settings import load


class TestBroker:
    @pytest.mark.parametrize(
        ("given", "means"),
        [
            ("kafka://127.0.0.1:9092", "127.0.0.1:9092"),
            ("127.0.0.1:9092", "127.0.0.1:9092"),
            ("kafka://a.example:1,b.example:65535", "a.example:1,b.example:65535"),
            ("kafka://[::1]:9092", "[::1]:9092"),
        ],
    )
    def test_brokers_are_given_with_or_without_the_scheme(self, given: str, means: str) -> None:
        settings = load_settings({"broker": given}, environment={})
        assert settings.bootstrap_servers == means
        assert settings.broker == f"kafka://{means}"

    @pytest.mark.parametrize(
        "given",
        [
            "",
            "kafka://",
            "host",
            "host:",
            ":9092",
            "host:port",
            "host:0",
            "host:65536",
            "host:99999",
            "host:٩٠٩٢",
            "a:1,",
            "a:1, b:2",
            "a:1;b:2",
            "http://a:1",
            "kafka://a:1,kafka://b:2",
            "::1:9092",
            "a:1/path",
            5,
        ],
    )
    def test_what_is_no_list_of_hosts_and_ports_is_refused(self, given: Any) -> None:
        with pytest.raises(ConfigurationError, match="--broker"):
            load("broker", given)


class TestValues:
    def test_lookback_is_minutes_or_all(self) -> None:
        assert load("lookback_minutes", "all") is None
        assert load("lookback_minutes", "0") == 0
        assert load("lookback_minutes", 90) == 90

    def test_weights_and_rates_of_tenants_are_a_text_a_list_or_a_table(self) -> None:
        for given in ("acme:4, b.c-d:1,", ["acme:4", "b.c-d:1"], {"acme": 4, "b.c-d": 1}):
            assert load("tenant_weights", given) == (("acme", 4), ("b.c-d", 1))
        assert load("tenant_firing_rates", "acme:0.5,*:unlimited") == (("acme", 0.5), ("*", None))
        assert load("tenant_firing_rates", {"acme": 0.5, "*": "unlimited"}) == (("acme", 0.5), ("*", None))
        assert (load("firing_rate", "1500"), load("firing_rate", "unlimited")) == (1_500, None)

    def test_probes_are_a_second_apart_at_least_or_off(self) -> None:
        assert (load("probe_interval", "1s"), load("probe_interval", "0"), Settings().probe_interval) == (1_000, 0, 0)
        with pytest.raises(ConfigurationError, match=r"--probe-interval: '999ms' must be at least 1s, or 0"):
            load("probe_interval", "999ms")

    def test_what_tenants_share_is_put_together_from_weights_and_rates(self) -> None:
        given = {"tenant_weights": "a:4", "firing_rate": 100, "tenant_firing_rates": "a:5,b:unlimited,*:7"}
        shares = load_settings(given, environment={}).shares
        assert shares == Shares({"a": 4}, 100.0, {"a": 5.0, "b": None, "*": 7.0})
        assert [shares.rate_of(tenant) for tenant in ("a", "b", "c")] == [5, None, 7]
        assert Shares().rate_of("a") is None

    def test_durations_are_read_in_every_spelling_that_has_a_unit(self) -> None:
        assert load("tick", "250ms") == load("tick", "0.25s") == load("tick", "PT0.25S") == 250
        assert load("stage_ahead", "0") == load("stage_ahead", 0) == 0

    @pytest.mark.parametrize("value", [250, "250"])
    def test_a_duration_without_a_unit_is_refused_wherever_it_is_typed(
        self, value: int | str, settings_file: Callable[[str], Path]
    ) -> None:
        needs_unit = r"'250' has no unit: write 250ms, 250s"
        with pytest.raises(ConfigurationError, match=rf"setting --tick: {needs_unit}"):
            load_settings({"tick": value}, environment={})
        with pytest.raises(ConfigurationError, match=rf"setting LIGHT_SCHEDULER_TICK: {needs_unit}"):
            load_settings(environment={"LIGHT_SCHEDULER_TICK": str(value)})
        with pytest.raises(ConfigurationError, match=rf"setting tick: {needs_unit}"):
            load_settings(environment={}, file=settings_file(f"tick = {value!r}\n"))

    def test_the_home_folder_is_filled_in(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setenv("HOME", "/home/someone")
        assert load("data_dir", "~/state") == Path("/home/someone/state")
        assert load("data_dir", Path("state")) == Path("state")

    @pytest.mark.parametrize(
        "name",
        [
            *("broker", "web_host", "data_dir", "ssl_ca", "sasl_username", "sasl_oauth_client_id", "sasl_oauth_scope"),
            *("sasl_oauth_token_url", "schema_registry", "schema_registry_username", "oidc_issuer", "oidc_audience"),
        ],
    )
    @pytest.mark.parametrize("given", ["7", "1.5", "true", '["a"]'])
    def test_what_is_no_text_in_a_file_is_to_be_put_in_quotes(
        self, name: str, given: str, settings_file: Callable[[str], Path]
    ) -> None:
        with pytest.raises(ConfigurationError, match=f"^setting {name}: must be text: put it in quotes$"):
            load_settings(environment={}, file=settings_file(f"{name} = {given}\n"))

    def test_an_empty_instance_id_is_none(self) -> None:
        assert load("instance_id", "") is None
        assert load("instance_id", "worker-1") == "worker-1"

    def test_defaults_would_be_accepted_if_they_were_given(self) -> None:
        for setting in fields(Settings):
            if setting.default not in (None, ()):
                is_duration = setting.metadata["syntax"] == "DURATION"
                given = f"{setting.default}ms" if is_duration else setting.default
                assert load(setting.name, given) == setting.default, setting.name


class TestCommandsTopics:
    def test_without_any_the_application_has_one_native_topic(self) -> None:
        assert load_settings({"app_id": "x"}, environment={}).inputs == (CommandsTopic("x-commands", "native"),)

    @pytest.mark.parametrize("given", ["orders:json,later", " orders:json , later,", ["orders:json", "later:native"]])
    def test_each_topic_has_its_dialect_native_by_default(self, given: Any) -> None:
        settings = load_settings({"commands_topics": given}, environment={})
        assert settings.inputs == (CommandsTopic("orders", "json"), CommandsTopic("later", "native"))

    @pytest.mark.parametrize(
        ("given", "default", "own"),
        [
            ("a:etf1,b:json,c,d", "c", ["b", "c", "d"]),
            ("a:etf1,b:json,c:json", "b", ["b", "c"]),
            ("a:etf1,b:karafka", "a", []),
            ("", "light-scheduler-commands", ["light-scheduler-commands"]),
        ],
    )
    def test_commands_about_what_is_pending_nowhere_go_to_a_native_topic_if_there_is_one(
        self, given: str, default: str, own: list[str]
    ) -> None:
        settings = load_settings({"commands_topics": given}, environment={})
        assert (settings.default_input.name, [source.name for source in settings.own_inputs]) == (default, own)

    @pytest.mark.parametrize(
        "given", ["a,a:json", "a:", ":json", "a b", "..", 5, [5], {"a": "json"}, "light-scheduler-history"]
    )
    def test_what_cannot_be_read_is_refused(self, given: Any) -> None:
        with pytest.raises(ConfigurationError, match="commands"):
            load("commands_topics", given)

    @pytest.mark.parametrize(
        "suffix", ["history", "results", "idempotency", "dead-letters", "schedules-changelog", "forecast", "tenants"]
    )
    def test_a_topic_that_workers_write_takes_no_commands(self, suffix: str) -> None:
        # The changelog's name depends on the input it belongs to, so the application's own input is among them.
        topics = f"x-commands,x-{suffix}"
        with pytest.raises(ConfigurationError, match=f"x-{suffix} cannot be a commands topic: workers write to it"):
            load_settings({"app_id": "x", "commands_topics": topics}, environment={})

    def test_firings_cannot_be_prepared_so_early_that_their_transaction_times_out(self) -> None:
        given = {"stage_ahead": "1001ms", "transaction_timeout": "2s"}
        with pytest.raises(ConfigurationError, match=r"stage_ahead: 1001ms is more than half of transaction_timeout"):
            load_settings(given, environment={})
        assert load_settings({**given, "stage_ahead": "1s"}, environment={}).stage_ahead == 1_000

    def test_no_schedule_may_aim_at_a_topic_that_only_workers_write(self) -> None:
        settings = load_settings({"app_id": "x", "commands_topics": "x-commands,orders"}, environment={})
        assert {"x-history", "x-schedules-changelog", "x-orders-schedules-changelog-1"} <= settings.internal_topics
        assert not settings.internal_topics & {"x-commands", "orders", "x-results", "x-idempotency"}
        assert settings.answers_only == {"x-idempotency"}

    def test_no_schedule_and_no_delay_rule_may_aim_at_a_states_topic_of_karafka(self) -> None:
        settings = load_settings({"app_id": "x", "commands_topics": "later:karafka,orders"}, environment={})
        assert settings.states_topics == {"later_states"}
        assert "later_states" in settings.internal_topics
        assert "later_states" in settings.reserved_topics
        with pytest.raises(ConfigurationError, match="later_states cannot be a commands topic: workers write to it"):
            load_settings({"app_id": "x", "commands_topics": "later:karafka,later_states"}, environment={})

    @pytest.mark.parametrize("topic", ["__consumer_offsets", "__transaction_state", "__share_group_state"])
    def test_no_schedule_and_no_delay_rule_may_aim_at_a_topic_of_kafkas_own(self, topic: str) -> None:
        settings = load_settings({"app_id": "x"}, environment={})
        assert topic in settings.internal_topics
        assert topic in settings.reserved_topics


def test_commands_topics_have_the_dialects_of_other_schedulers() -> None:
    given = "a:karafka,b:etf1,c:skyuk,d:light4j,e:json,f"
    settings = load_settings({"commands_topics": given}, environment={})
    assert [topic.dialect for topic in settings.inputs] == ["karafka", "etf1", "skyuk", "light4j", "json", "native"]


def test_a_dialect_that_does_not_exist_is_refused_with_the_closest_that_does() -> None:
    with pytest.raises(
        ConfigurationError, match=r"commands-topics.*'a:karfka'.*did you mean karafka\? Use one of native"
    ):
        load_settings({"commands_topics": "a:karfka"}, environment={})


@pytest.mark.parametrize("address", ["http://127.0.0.1:8081", "https://registry.example/"])
def test_a_schema_registry_is_an_address(address: str) -> None:
    assert load_settings({"schema_registry": address}, environment={}).schema_registry == address.rstrip("/")


@pytest.mark.parametrize(
    "address", ["registry:8081", "http://", "http://h:99999", "ftp://user:secret@h", "http://user:secret@h:8081"]
)
def test_a_bad_schema_registry_is_refused_without_showing_its_password(address: str) -> None:
    with pytest.raises(ConfigurationError, match="schema-registry") as caught:
        load_settings({"schema_registry": address}, environment={})
    assert "secret" not in str(caught.value)


def test_the_login_of_a_schema_registry_is_a_secret() -> None:
    login = {"schema_registry_username": "user", "schema_registry_password": "hidden"}
    settings = load_settings({"schema_registry": "http://127.0.0.1:8081", **login}, environment={})
    assert settings.registry is not None
    assert settings.registry.headers() == {"Authorization": "Basic dXNlcjpoaWRkZW4="}
    assert "hidden" not in repr(settings) + repr(settings.registry)


@pytest.mark.parametrize(
    ("given", "at_fault"),
    [
        ({"username": "u"}, "schema_registry_password is not set"),
        ({"password": "hidden"}, "schema_registry_username is not set, but schema_registry_password is"),
        ({"password_file": "f"}, "schema_registry_username is not set, but schema_registry_password_file is"),
        ({"username": "u", "password": "hidden", "password_file": "f"}, "remove one of them"),
    ],
)
@pytest.mark.parametrize("address", ["http://127.0.0.1:8081", None])
def test_a_login_of_a_schema_registry_that_is_not_whole_is_refused(
    given: dict[str, str], at_fault: str, address: str | None
) -> None:
    login = {f"schema_registry_{name}": value for name, value in given.items()}
    with pytest.raises(ConfigurationError) as caught:
        load_settings({"schema_registry": address, **login}, environment={})
    assert ("schema_registry is not set" if address is None else at_fault) in str(caught.value).replace(":", "")
    assert "hidden" not in str(caught.value)
