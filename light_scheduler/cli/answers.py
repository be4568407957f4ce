"""Sends one command and prints its outcome. Shared by all commands that do so."""

from __future__ import annotations

import asyncio
import functools
import logging
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any, TypeVar

import click
from msgspec import UNSET

from light_scheduler.client import Receipt
from light_scheduler.client.bulk_results import BulkAnswers, answers_of
from light_scheduler.client.channel import Channel, ChannelTopics, MakeCommand
from light_scheduler.client.commands import CommandToSend, InvalidHeader
from light_scheduler.errors import ConfigurationError, InvalidCommand
from light_scheduler.model import FAILURES, ReplyTo, Result
from light_scheduler.model.plain_reasons import warning_in
from light_scheduler.settings import Settings
from light_scheduler.web.commands.channel import largest_record
from light_scheduler.wire import format_instant
from light_scheduler.wire.durations import MAX_SHOWN, shown
from light_scheduler.wire.json_form import in_json_form
from light_scheduler.wire.named_fields import in_names

from .command_check import check_command
from .durations import Duration
from .location import Location, place_of
from .options import settings_options, tenant_option, url_option
from .output import Output, output_option
from .parameter_names import parameter_name
from .verbosity import warn

F = TypeVar("F", bound=Callable[..., Any])

CONNECT_TIMEOUT_S = 4.0
"""How long to wait for the broker. A person is waiting, so a slower broker is reported as unreachable."""


class Sender:
    """Sends the command given by the options of `sending_options`, and prints its outcome."""

    def __init__(
        self, settings: Settings, tenant: str, url: str | None, *, wait: bool, timeout: int, output: Output
    ) -> None:
        self.tenant = tenant
        self.settings = settings
        self.waits = wait
        self.timeout_s = timeout / 1_000
        self.output = output
        self._url = url or settings.web_url

    def send(self, make: MakeCommand, *, find: str | None = None, to_all: bool = False) -> None:
        """Send a command and print the result or receipt. Exit with 1 if it was refused or found nothing.

        `find` is the id of a schedule without a given key: the command goes to the partition in which a worker finds
        it. With `to_all`, a bulk command goes to all commands topics that take bulk commands. Raises click.UsageError
        if the command is invalid, BrokerError, ResultTimeout, NotInAllTopics, and ClientError if a worker cannot tell
        where the schedule is.
        """
        quiet_kafka_client()
        with invalid_commands_as_wrong_use():
            answer = asyncio.run(self._sent(make, find, to_all=to_all))
        report(answer, self.output)

    async def _sent(self, make: MakeCommand, find: str | None, *, to_all: bool) -> Result | Receipt:
        settings = self.settings
        default = settings.default_input
        check_command(make(None))  # report mistakes before asking a worker or a broker
        async with Channel(
            settings.connection.aiokafka(),
            ChannelTopics(default.name, settings.topics.results),
            connect_timeout=CONNECT_TIMEOUT_S,
            max_request_bytes=largest_record(settings),
        ) as channel:
            found = None if find is None else await place_of(settings, self._url, self.tenant, find)
            topics = (settings.own_inputs if to_all else ()) or (default,)
            places = [found] if found else [Location(topic.name, None, topic.dialect) for topic in topics]
            makers = {place.topic: _placed(make, place) for place in places}
            if self.waits:
                asked = {topic: channel.ask(each, self.timeout_s) for topic, each in makers.items()}
                return BulkAnswers(await answers_of(asked)).as_one()
            sent = {topic: channel.send(each(None), self.timeout_s) for topic, each in makers.items()}
            return BulkAnswers(await answers_of(sent)).as_one()


def _placed(make: MakeCommand, place: Location) -> MakeCommand:
    def placed(reply_to: ReplyTo | None) -> CommandToSend:
        command = make(reply_to)._replace(topic=place.topic, partition=place.partition)
        if place.dialect == "native":
            return command
        value, headers = in_json_form(command.value, command.headers)
        return command._replace(value=value, headers=headers)

    return placed


def report(answer: Result | Receipt, output: Output) -> None:
    """Print an answer; exit with 1 if it is a failure. The reason of a success can be a warning."""
    if output.is_table:
        click.echo(_line(answer))
    else:
        output.print(answer)
    if isinstance(answer, Result):
        if answer.outcome in FAILURES:
            sys.exit(1)
        if answer.reason and (warning := warning_in(answer.reason)):
            warn(warning)


def sending_options(function: F) -> F:
    """Add `--tenant`, `--url`, `--no-wait`, `--timeout`, `-o` and settings. The command receives `sender`."""

    @functools.wraps(function)
    def with_sender(
        *args: Any,
        settings: Settings,
        tenant: str,
        url: str | None,
        no_wait: bool,
        timeout: int,
        output: Output,
        **kwargs: Any,
    ) -> Any:
        sender = Sender(settings, tenant, url, wait=not no_wait, timeout=timeout, output=output)
        return function(*args, sender=sender, **kwargs)

    command: Any = output_option()(
        settings_options("app_id", "broker", "commands_topics", "web_host", "web_port")(with_sender)
    )
    for option in (
        click.option(
            "--timeout",
            type=Duration(),
            default="30s",
            show_default=True,
            help="How long to wait for the scheduler's answer.",
        ),
        url_option,
        click.option(
            "--no-wait", is_flag=True, help="Return as soon as Kafka has the command. Do not wait for the scheduler."
        ),
        tenant_option,
    ):
        command = option(command)
    return command  # type: ignore[no-any-return]


@contextmanager
def invalid_commands_as_wrong_use() -> Iterator[None]:
    """Report an invalid command as wrong usage of the option at fault."""
    try:
        yield
    except InvalidHeader as error:
        raise click.UsageError(f"--header: {error.field}: {error.reason}") from error
    except InvalidCommand as error:
        name = error.field.removeprefix("schedule-")
        reason = in_names(error.reason, "--{}".format)
        given = click.get_current_context().params.get(name.replace("-", "_"))
        is_named = isinstance(given, str) and (shown(given) in reason or reason.startswith(given))
        if isinstance(given, str) and len(given) <= MAX_SHOWN and not is_named:
            reason += f" (given: {shown(given)})"
        raise click.UsageError(f"{parameter_name(name)}: {reason}") from error


def quiet_kafka_client() -> None:
    """Keep the Kafka client's own log lines off the terminal: our errors contain everything important in them."""
    logging.getLogger("aiokafka").setLevel(logging.CRITICAL + 1)


def native_topic(settings: Settings) -> str:
    """Return the commands topic of the native dialect. Raises ConfigurationError if there is none."""
    for topic in settings.inputs:
        if topic.dialect == "native":
            return topic.name
    raise ConfigurationError(
        "commands_topics", "has no topic of the dialect native, which this command needs: add one, such as NAME:native"
    )


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
    if answer.reason and answer.outcome in FAILURES:
        parts.append(f"({_reason(answer)})")
    return " ".join(parts)


def _reason(answer: Result) -> str:
    """Return why a command was refused, in the names of the command line."""
    reason = in_names(str(answer.reason), "--{}".format)
    if answer.field is None:
        return reason
    name = answer.field.removeprefix("schedule-")
    return f"{answer.field if name == answer.field else parameter_name(name)}: {reason}"
