"""Converts the options of `schedule` to a client's request. `preview` shares all options except those of the
message."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import click

from light_scheduler.wire.build import TIME_RULE
from light_scheduler.wire.fields import parse_base64

TIME_AND_TARGET = (
    *TIME_RULE,
    *("target-topic", "target-key", "target-key-base64", "target-partition", "target-partition-key"),
)
DELIVERY = (
    *("ttl", "priority", "labels", "paused", "ack-timeout", "max-attempts", "overlap"),
    *("on-conflict", "expected-version"),
)
"""Options that are headers of a schedule, in the order of the help."""

key_option = click.option(
    "--key", metavar="KEY", help="Entity key: commands with the same key are carried out in order. Default: the id."
)


def request_of(options: Mapping[str, Any]) -> dict[str, Any]:
    """Return the request that the options describe; an option that is None was not given. Raises click.UsageError."""
    request = {name: value for name, value in options.items() if value is not None}
    if "target_topic" in request:
        request["topic"] = request.pop("target_topic")
    if (encoded := request.pop("target_key_base64", None)) is not None:
        if "target_key" in request:
            raise click.UsageError(
                "--target-key and --target-key-base64 are given together: a message has one key. Give one of them"
            )
        request["target_key"] = decoded("--target-key-base64", encoded)
    return request


def decoded(option: str, encoded: str) -> bytes:
    """Decode base64. Raises click.BadParameter naming the option."""
    try:
        return parse_base64(encoded)
    except ValueError as error:
        raise click.BadParameter(f"it {error}", param_hint=option) from None
