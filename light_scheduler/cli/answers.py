"""Sending one command from the command line and telling its outcome: what `schedule` and `cancel` share."""

from __future__ import annotations

import asyncio
import logging
import sys
from collections.abc import Awaitable, Callable
from typing import Any

import click
import msgspec

from light_scheduler.client import Receipt, SchedulerClient
from light_scheduler.durations import parse_duration
from light_scheduler.errors import ConfigurationError, InvalidCommand
from light_scheduler.model import Outcome, Result
from light_scheduler.settings import Settings
from light_scheduler.wire import format_instant

_FAILURES = (Outcome.REJECTED, Outcome.CONFLICT, Outcome.NOT_FOUND)


class Duration(click.ParamType):
    """A duration option; the command receives ms."""

    name = "duration"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> int:
        if isinstance(value, int):
            return value
        try:
            return parse_duration(value)
        except ValueError as error:
            self.fail(str(error), param, ctx)


def send_command(
    settings: Settings,
    tenant: str,
    send: Callable[[SchedulerClient], Awaitable[Result | Receipt]],
    *,
    as_json: bool,
) -> None:
    """Send a command and print the result or receipt; exit with 1 if it was refused or found nothing.

    Raises click.UsageError if the command cannot be right, and what the client raises.
    """
    quiet_kafka_client()

    async def sent() -> Result | Receipt:
        async with SchedulerClient(
            settings.bootstrap_servers, app_id=settings.app_id, tenant=tenant, commands_topic=_commands_topic(settings)
        ) as client:
            return await send(client)

    try:
        answer = asyncio.run(sent())
    except InvalidCommand as error:
        raise click.UsageError(f"--{error.field.removeprefix('schedule-')}: {error.reason}") from error
    click.echo(msgspec.json.encode(answer) if as_json else _line(answer))
    if isinstance(answer, Result) and answer.outcome in _FAILURES:
        sys.exit(1)


def quiet_kafka_client() -> None:
    """Keep the Kafka client's own log lines off the terminal: what matters of them is in our errors."""
    logging.getLogger("aiokafka").setLevel(logging.CRITICAL + 1)


def _commands_topic(settings: Settings) -> str:
    for topic in settings.inputs:
        if topic.dialect == "native":
            return topic.name
    raise ConfigurationError("commands_topics", "names no topic of the native dialect, which this command writes")


def _line(answer: Result | Receipt) -> str:
    if isinstance(answer, Receipt):
        return f"sent {answer.tenant}/{answer.id} (partition {answer.partition}, offset {answer.offset})"
    parts = [f"{answer.outcome} {answer.tenant}/{answer.id}"]
    if answer.version is not None:
        parts.append(f"version {answer.version}")
    if answer.next_due is not None:
        parts.append(f"due {format_instant(answer.next_due)}")
    if answer.reason:
        parts.append(f"({answer.field}: {answer.reason})" if answer.field else f"({answer.reason})")
    return " ".join(parts)
