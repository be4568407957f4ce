"""`light-scheduler schedule`: schedule one message."""

from __future__ import annotations

from typing import IO, Any

import click

from light_scheduler.client import Receipt, ScheduleOptions, SchedulerClient
from light_scheduler.model import DEFAULT_TENANT, Result
from light_scheduler.settings import Settings
from light_scheduler.wire.fields import parse_base64

from .answers import Duration, send_command
from .options import json_option, settings_options


@click.command("schedule")
@click.option("--id", metavar="ID", help="Identity; default: the key, or a new id.")
@click.option("--tenant", default=DEFAULT_TENANT, show_default=True, help="Whose schedule it is.")
@click.option("--key", metavar="KEY", help="Entity key: decides order and partition; default: the id.")
@click.option("--at", metavar="INSTANT", help="UTC epoch ms, or RFC 3339 with an offset: 2026-01-01T09:00:00+01:00.")
@click.option("--after", metavar="DURATION", help="From now: 90s, 15m, 2h, PT15M. Neither --at nor --after: now.")
@click.option("--target-topic", required=True, metavar="TOPIC", help="Topic that the message goes to.")
@click.option("--target-key", metavar="KEY", help="Key of the message; default: the entity key.")
@click.option("--target-partition", type=int, metavar="N", help="Partition of the message.")
@click.option("--target-partition-key", metavar="KEY", help="Key that chooses the partition instead.")
@click.option("--payload", metavar="TEXT", help="Value of the message, as UTF-8; default: no bytes.")
@click.option("--payload-file", type=click.File("rb"), metavar="FILE", help="File that holds the value; - is stdin.")
@click.option("--payload-base64", metavar="BASE64", help="Value of the message, as base64.")
@click.option("--header", "headers", multiple=True, metavar="NAME=VALUE", help="Header of the message; repeatable.")
@click.option("--ttl", metavar="DURATION", help="Not delivered later than that after due.")
@click.option("--on-past", metavar="fire|reject|DURATION", help="If due has passed: fire (default), reject, a grace.")
@click.option("--priority", type=int, metavar="0..255", help="Order among what is due in the same instant: 0 is first.")
@click.option("--labels", metavar="NAME=VALUE,...", help="Labels to find schedules by.")
@click.option("--on-conflict", type=click.Choice(["replace", "keep", "fail"]), help="If the id exists.")
@click.option("--expected-version", type=int, metavar="N", help="Version that the schedule must have.")
@click.option("--no-wait", is_flag=True, help="Do not wait for the scheduler's answer.")
@click.option("--timeout", type=Duration(), default="30s", show_default=True, help="How long to wait for the answer.")
@settings_options("app_id", "broker", "commands_topics")
@json_option
def command(
    settings: Settings,
    as_json: bool,
    id: str | None,
    tenant: str,
    target_topic: str,
    payload: str | None,
    payload_file: IO[bytes] | None,
    payload_base64: str | None,
    headers: tuple[str, ...],
    no_wait: bool,
    timeout: int,
    **given: Any,
) -> None:
    """Schedule a message and print the scheduler's answer.

    Exit code 1: the scheduler refused it, did not answer in time, or the broker cannot be reached.
    """
    content = _payload(payload, payload_file, payload_base64)
    request: ScheduleOptions = {"topic": target_topic, "headers": [_header(header) for header in headers]}
    for name, value in given.items():
        if value is not None:
            request[name] = value  # type: ignore[literal-required]

    async def send(client: SchedulerClient) -> Result | Receipt:
        if no_wait:
            return await client.schedule(id, content, wait=False, timeout=timeout / 1_000, **request)
        return await client.schedule(id, content, timeout=timeout / 1_000, raise_on_refusal=False, **request)

    send_command(settings, tenant, send, as_json=as_json)


def _payload(text: str | None, file: IO[bytes] | None, encoded: str | None) -> bytes:
    given = [
        name
        for name, value in (("--payload", text), ("--payload-file", file), ("--payload-base64", encoded))
        if value is not None
    ]
    if len(given) > 1:
        raise click.UsageError(f"{' and '.join(given)} are given together: a message has one payload")
    if file is not None:
        return file.read()
    if encoded is not None:
        try:
            return parse_base64(encoded)
        except ValueError as error:
            raise click.BadParameter(str(error), param_hint="--payload-base64") from None
    return (text or "").encode()


def _header(text: str) -> tuple[str, str]:
    name, equals, value = text.partition("=")
    if not equals or not name:
        raise click.BadParameter(f"{text!r} is not NAME=VALUE", param_hint="--header")
    return name, value
