"""Sending one command from the command line and telling its outcome: what all commands that do so share."""

from __future__ import annotations

import asyncio
import functools
import logging
import re
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any, TypeVar

import click
import msgspec
from msgspec import UNSET

from light_scheduler.client import Receipt
from light_scheduler.client.channel import Channel, MakeCommand
from light_scheduler.durations import parse_duration
from light_scheduler.errors import ConfigurationError, InvalidCommand
from light_scheduler.model import DEFAULT_TENANT, Outcome, Result
from light_scheduler.settings import Settings
from light_scheduler.wire import format_instant

from .options import json_option, settings_options

F = TypeVar("F", bound=Callable[..., Any])

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


class Sender:
    """Sends the command that the options of `sending_options` ask for, and prints what became of it."""

    def __init__(self, settings: Settings, tenant: str, *, wait: bool, timeout: int, as_json: bool) -> None:
        self.tenant = tenant
        self._settings = settings
        self._wait = wait
        self._timeout_s = timeout / 1_000
        self._as_json = as_json

    def send(self, make: MakeCommand) -> None:
        """Send a command and print the result or receipt; exit with 1 if it was refused or found nothing.

        Raises click.UsageError if the command cannot be right, BrokerError and ResultTimeout.
        """
        quiet_kafka_client()
        with invalid_commands_as_wrong_use():
            answer = asyncio.run(self._sent(make))
        click.echo(msgspec.json.encode(answer) if self._as_json else _line(answer))
        if isinstance(answer, Result) and answer.outcome in _FAILURES:
            sys.exit(1)

    async def _sent(self, make: MakeCommand) -> Result | Receipt:
        settings = self._settings
        make(None)  # what is wrong is said before a broker is asked for
        async with Channel(
            {"bootstrap_servers": settings.bootstrap_servers},
            commands_topic=native_topic(settings),
            results_topic=settings.topics.results,
        ) as channel:
            if self._wait:
                return await channel.ask(make, self._timeout_s)
            return await channel.send(make(None), self._timeout_s)


def sending_options(function: F) -> F:
    """Add `--tenant`, `--no-wait`, `--timeout`, `--json` and the settings; the command receives `sender: Sender`."""

    @functools.wraps(function)
    def with_sender(
        *args: Any, settings: Settings, tenant: str, no_wait: bool, timeout: int, as_json: bool, **kwargs: Any
    ) -> Any:
        sender = Sender(settings, tenant, wait=not no_wait, timeout=timeout, as_json=as_json)
        return function(*args, sender=sender, **kwargs)

    command: Any = json_option(settings_options("app_id", "broker", "commands_topics")(with_sender))
    for option in (
        click.option(
            "--timeout", type=Duration(), default="30s", show_default=True, help="How long to wait for the answer."
        ),
        click.option("--no-wait", is_flag=True, help="Do not wait for the scheduler's answer."),
        click.option("--tenant", default=DEFAULT_TENANT, show_default=True, help="Whose schedule it is."),
    ):
        command = option(command)
    return command  # type: ignore[no-any-return]


@contextmanager
def invalid_commands_as_wrong_use() -> Iterator[None]:
    """Say of a command that cannot be right which option is at fault."""
    try:
        yield
    except InvalidCommand as error:
        raise click.UsageError(f"--{error.field.removeprefix('schedule-')}: {_in_options(error.reason)}") from error


def quiet_kafka_client() -> None:
    """Keep the Kafka client's own log lines off the terminal: what matters of them is in our errors."""
    logging.getLogger("aiokafka").setLevel(logging.CRITICAL + 1)


def _in_options(reason: str) -> str:
    """Name other headers in a reason as the options that they are here."""
    return re.sub(r"(?<![\w-])schedule-(?=[a-z])", "--", reason)


def native_topic(settings: Settings) -> str:
    """Return the topic that commands go to in headers. Raises ConfigurationError if there is none."""
    for topic in settings.inputs:
        if topic.dialect == "native":
            return topic.name
    raise ConfigurationError("commands_topics", "names no topic of the native dialect, which this command writes")


def _line(answer: Result | Receipt) -> str:
    if isinstance(answer, Receipt):
        return f"sent {answer.tenant}/{answer.id} (partition {answer.partition}, offset {answer.offset})"
    parts = [f"{answer.outcome} {answer.tenant}/{answer.id}"]
    if answer.count is not UNSET:
        parts.append(f"{answer.count} schedule{'' if answer.count == 1 else 's'}")
    if answer.version is not None:
        parts.append(f"version {answer.version}")
    if answer.next_due is not None:
        parts.append(f"due {format_instant(answer.next_due)}")
    if answer.reason:
        parts.append(f"({answer.field}: {answer.reason})" if answer.field else f"({answer.reason})")
    return " ".join(parts)
