"""Options of a run."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated

import msgspec
from msgspec import Meta

from light_scheduler.connection.security import Mechanism, Protocol
from light_scheduler.errors import ConfigurationError
from light_scheduler.settings import Settings

from .dialects import AVRO


class Options(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """The options of `light-scheduler bench`, as under `settings` in its document.

    Options with a default appear there only for scenarios that have them.
    """

    partitions: Annotated[int, Meta(description="Partitions of the commands topic and of the target topic.")]
    payload_bytes: Annotated[int, Meta(description="Bytes of each payload; no two are alike.")]
    repeat: Annotated[int, Meta(description="Rounds.")]
    seed: Annotated[int, Meta(description="Seed of the first round. Each further round uses the next.")]
    messages: Annotated[int, Meta(description="Schedules in each round.")] = 0
    pending: Annotated[int, Meta(description="Other pending schedules, which are not due.")] = 0
    rate: Annotated[int, Meta(description="Schedules that are due per second.")] = 0
    grid_ms: Annotated[int, Meta(description="Due times are multiples of it, in ms.")] = 0
    stage_ahead_ms: Annotated[int, Meta(description="The worker's `stage_ahead`, in ms.")] = Settings.stage_ahead
    seconds: Annotated[int, Meta(description="How long the load lasts, in seconds.")] = 0
    workers: Annotated[int, Meta(description="Workers that share the partitions.")] = 0
    brokers: Annotated[
        int, Meta(description="Number of brokers. With three, each record has three replicas, and two must be in sync.")
    ] = 0
    pause_ms: Annotated[int, Meta(description="Time between faults, on average, in ms.")] = 0
    dialect: Annotated[str, Meta(description="Dialect of the commands.")] = "native"
    framed: Annotated[bool, Meta(description="Whether a schema registry frames the Avro of the commands.")] = False
    security_protocol: Annotated[Protocol, Meta(description="How the worker connects to Kafka.")] = "PLAINTEXT"
    sasl_mechanism: Annotated[Mechanism | None, Meta(description="How the worker logs in, with SASL.")] = None


OF_EVERY_SCENARIO: Mapping[str, int] = {"partitions": 4, "payload_bytes": 200, "repeat": 3, "seed": 1}
"""The options of all scenarios, and their defaults."""


def chosen(scenario: str, defaults: Mapping[str, int | str], given: Mapping[str, int | str | None]) -> Options:
    """Return a scenario's options: the given ones (None: not given), or else its defaults.

    If the number of messages is not an option, it follows from the rate. Raises ConfigurationError for an option that
    does not apply.
    """
    known = {**OF_EVERY_SCENARIO, **defaults}
    named = {name: value for name, value in given.items() if value is not None}
    for name in named.keys() - known.keys():
        applicable = ", ".join(option_name(each) for each in known)
        raise ConfigurationError(option_name(name), f"does not apply to {scenario}; use {applicable}")
    for name in ("grid_ms", "pause_ms"):
        if named.get(name) == 0:
            raise ConfigurationError(option_name(name), "must be longer than 0")
    values = {**known, **named}
    if values.get("framed") and values["dialect"] not in AVRO:
        raise ConfigurationError("--framed", f"applies only to --dialect {' and '.join(AVRO)}, which are Avro")
    if not str(values.get("security_protocol")).startswith("SASL_"):
        if "sasl_mechanism" in named:
            reason = "applies only to --security-protocol SASL_PLAINTEXT and SASL_SSL, which have a login"
            raise ConfigurationError("--sasl-mechanism", reason)
        values.pop("sasl_mechanism", None)
    if "rate" in known and "messages" not in known:
        values["messages"] = int(values["rate"]) * int(values["seconds"])
    return msgspec.convert(values, Options)


def option_name(field: str) -> str:
    """Return the name of an option on the command line."""
    return "--" + field.removesuffix("_ms").replace("_", "-")
