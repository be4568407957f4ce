"""What a scenario is asked for: its own defaults, what was given, and nothing that does not apply."""

from __future__ import annotations

import pytest

from light_scheduler.bench.options import chosen
from light_scheduler.bench.registry import SCENARIOS, scenario_named
from light_scheduler.errors import ConfigurationError


@pytest.mark.parametrize("scenario", SCENARIOS)
def test_a_scenario_can_be_run_without_options(scenario: str) -> None:
    options = chosen(scenario, scenario_named(scenario).defaults, {})
    assert options.messages + options.pending > 0


def test_what_is_given_is_taken_and_what_is_not_given_is_not() -> None:
    options = chosen("burst", {"messages": 7}, {"messages": None, "repeat": 9})
    assert (options.messages, options.repeat) == (7, 9)


def test_the_number_of_messages_follows_from_a_rate() -> None:
    assert chosen("steady", {"rate": 10, "seconds": 3}, {"seconds": 4}).messages == 40


@pytest.mark.parametrize(("option", "field"), [("--rate", "rate"), ("--grid", "grid_ms")])
def test_an_option_that_does_not_apply_is_refused_by_its_name(option: str, field: str) -> None:
    with pytest.raises(ConfigurationError, match=f"{option}: does not apply to burst.*--messages"):
        chosen("burst", {"messages": 1}, {field: 5})


def test_chaos_has_no_secured_connection() -> None:
    with pytest.raises(ConfigurationError, match="--security-protocol: does not apply to chaos"):
        chosen("chaos", scenario_named("chaos").defaults, {"security_protocol": "SSL"})


@pytest.mark.parametrize("protocol", [None, "PLAINTEXT", "SSL"])
def test_a_mechanism_is_refused_without_a_login(protocol: str | None) -> None:
    defaults = scenario_named("burst").defaults
    message = "--sasl-mechanism: applies only to --security-protocol SASL_PLAINTEXT and SASL_SSL"
    with pytest.raises(ConfigurationError, match=message):
        chosen("burst", defaults, {"security_protocol": protocol, "sasl_mechanism": "PLAIN"})
    assert chosen("burst", defaults, {"security_protocol": protocol}).sasl_mechanism is None


@pytest.mark.parametrize("protocol", ["SASL_PLAINTEXT", "SASL_SSL"])
def test_a_login_has_the_mechanism_that_is_given_and_plain_else(protocol: str) -> None:
    defaults = scenario_named("burst").defaults
    assert chosen("burst", defaults, {"security_protocol": protocol}).sasl_mechanism == "PLAIN"
    given = {"security_protocol": protocol, "sasl_mechanism": "SCRAM-SHA-512"}
    assert chosen("burst", defaults, given).sasl_mechanism == "SCRAM-SHA-512"


@pytest.mark.parametrize("dialect", ["native", "karafka"])
def test_only_avro_is_framed(dialect: str) -> None:
    defaults = scenario_named("ingest").defaults
    with pytest.raises(ConfigurationError, match="--framed: applies only to --dialect skyuk and light4j"):
        chosen("ingest", defaults, {"framed": True, "dialect": dialect})
    assert chosen("ingest", defaults, {"framed": True, "dialect": "skyuk"}).framed
    assert not chosen("ingest", defaults, {"framed": None, "dialect": dialect}).framed


def test_a_grid_of_nothing_is_refused() -> None:
    with pytest.raises(ConfigurationError, match="--grid: must be longer than 0"):
        chosen("steady", {"rate": 1, "seconds": 1, "grid_ms": 1}, {"grid_ms": 0})
