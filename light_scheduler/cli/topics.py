"""`light-scheduler topics`: create, check or grow the topics of an application."""

from __future__ import annotations

import sys
from typing import Any

import click
from click.core import ParameterSource
from rich.console import Console
from rich.table import Table
from rich.text import Text

from light_scheduler.settings import Settings

from .durations import Duration
from .examples import examples
from .interruption import interruptible
from .options import settings_options
from .output import Output, output_option
from .suggesting import SuggestingGroup
from .verbosity import status

_SETTINGS = ("app_id", "broker", "partitions", "replication_factor", "commands_topics", "max_payload_bytes")


class TopicPartitions(click.ParamType):
    """An option `TOPIC=N`; the command receives both."""

    name = "topic=n"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> tuple[str, int]:
        if isinstance(value, tuple):
            return value
        topic, _, number = value.rpartition("=")
        if not (topic and number.isascii() and number.isdecimal() and int(number)):
            self.fail(f"{value!r} is not a topic and its number of partitions, such as orders=12", param, ctx)
        return topic, int(number)


@click.group("topics", cls=SuggestingGroup)
def command() -> None:
    """Create, check or grow the topics of an application."""


@command.command("create", epilog=examples("topics create", "topics create --partitions 12 --replication-factor 3"))
@settings_options(*_SETTINGS)
@click.option(
    "--commands-partitions",
    "decided",
    multiple=True,
    type=TopicPartitions(),
    metavar="TOPIC=N",
    help="Number of partitions of a lost commands topic, if Kafka does not tell. Can be repeated.",
)
@output_option()
def create(settings: Settings, decided: tuple[tuple[str, int], ...], output: Output) -> None:
    """Create the missing topics. Existing topics stay as they are: see `topics check`.

    If a commands topic is missing and its changelog exists, the topic gets as many partitions as its schedules are
    distributed over: as many as the changelog has, or fewer if adding partitions was interrupted.
    """
    from light_scheduler.kafka.topic_admin import create_topics
    from light_scheduler.kafka.topic_plan import topic_plan

    from .lost_topics import partitions_of_lost_topics, said_of_created_again

    requested = click.get_current_context().get_parameter_source("partitions") is ParameterSource.COMMANDLINE
    with status(f"Creating topics on {settings.bootstrap_servers}"):
        lost = interruptible(lambda: partitions_of_lost_topics(settings, dict(decided)))
        report = interruptible(lambda: create_topics(settings, partitions_requested=requested, lost=lost))
    for sentence in said_of_created_again(settings, report.created_again):
        click.echo(sentence, err=True)
    if not output.is_table:
        output.print({"created": report.created, "existing": report.existing})
        return
    table = Table("Topic", "", "Purpose")
    for spec in topic_plan(settings):
        state = Text("created", "green") if spec.name in report.created else Text("exists")
        table.add_row(Text(spec.name), state, Text(spec.purpose))
    Console().print(table)


@command.command("check", epilog=examples("topics check", "topics check --broker kafka://kafka-1:9092 --json"))
@settings_options(*_SETTINGS)
@output_option()
def check(settings: Settings, output: Output) -> None:
    """Check that the topics are set up as workers need them, and print what to do.

    Exit code 1: workers cannot run with these topics. Warnings alone: exit code 0.
    """
    from light_scheduler.kafka.topic_admin import check_topics

    from .findings import print_findings

    with status(f"Reading topics of {settings.bootstrap_servers}"):
        findings = interruptible(lambda: check_topics(settings))
    failed = any(finding.status == "fail" for finding in findings)
    if not output.is_table:
        output.print({"ok": not failed, "findings": findings}, rows="findings")
    elif findings:
        print_findings(Console(), findings)
    else:
        click.echo(f"Topics of {settings.app_id}: no problem found.")
    if failed:
        sys.exit(1)


@command.command("grow", epilog=examples("topics grow --partitions 12"))
@settings_options(*_SETTINGS)
@click.option("--commands-topic", "name", metavar="TOPIC", help="The commands topic to grow, if there are several.")
@click.option(
    "--wait",
    "wait_ms",
    type=Duration(),
    default="1h",
    show_default=True,
    help="How long to wait until all schedules have moved; 0s: not at all.",
)
@output_option()
def grow(settings: Settings, name: str | None, wait_ms: int, output: Output) -> None:
    """Add partitions to a commands topic (--partitions: the new total) while workers run.

    Schedules whose key belongs to another partition move there automatically. Shows their progress until all have
    moved; run it again to continue watching. Exit code 1: not all have moved after --wait.
    """
    from .growing import grow, moved, topic_to_grow

    topic = topic_to_grow(settings, name)
    with status(f"Adding partitions to {topic}") as shown:
        interruptible(lambda: grow(settings, topic, settings.partitions))
        done = interruptible(lambda: moved(settings, topic, settings.partitions, wait_ms / 1_000, shown.update))
    if not output.is_table:
        output.print({"topic": topic, "partitions": settings.partitions, "moved": done})
    elif done:
        click.echo(f"{topic} has {settings.partitions} partitions, and every schedule is where its key belongs.")
    else:
        click.echo(f"{topic} has {settings.partitions} partitions; schedules still move. Run this again to watch them.")
    if not done:
        sys.exit(1)
