"""`light-scheduler bench`: measure a worker on this machine."""

from __future__ import annotations

import sys

import click
from rich.console import Console

from light_scheduler.bench.registry import SCENARIOS
from light_scheduler.devkit.foreground import StopRequested, stop_signals

from .options import json_option

_HELP = "\b\nScenarios:\n" + "\n".join(f"  {name:<8}{summary}" for name, (_, summary) in SCENARIOS.items())


@click.command("bench", epilog=_HELP)
@click.argument("scenario", type=click.Choice(list(SCENARIOS)))
@click.option(
    "--messages", type=click.IntRange(100, 100_000_000), default=200_000, show_default=True, help="Schedules a round."
)
@click.option(
    "--partitions", type=click.IntRange(1, 1_000), default=4, show_default=True, help="Partitions of each topic."
)
@click.option(
    "--payload-bytes", type=click.IntRange(0, 100_000), default=200, show_default=True, help="Size of each payload."
)
@click.option("--repeat", type=click.IntRange(1, 1_000), default=3, show_default=True, help="Rounds.")
@click.option("--seed", type=int, default=1, show_default=True, help="What payloads are drawn from.")
@json_option
def command(
    scenario: str, as_json: bool, messages: int, partitions: int, payload_bytes: int, repeat: int, seed: int
) -> None:
    """Measure a worker on this machine, with a broker and topics of its own.

    Each round begins with the ceiling: what the Kafka client alone does on the same broker. Everything is temporary.
    Exit code 1 if a message was missing, delivered twice or early.
    """
    from light_scheduler.bench.options import Options
    from light_scheduler.bench.progress import Progress
    from light_scheduler.bench.run import run
    from light_scheduler.bench.table import table_of

    from .answers import quiet_kafka_client

    quiet_kafka_client()
    options = Options(messages=messages, partitions=partitions, payload_bytes=payload_bytes, repeat=repeat, seed=seed)
    try:
        with stop_signals(), Progress() as progress:
            document = run(scenario, options, progress)
    except StopRequested:
        click.echo("Stopped.", err=True)
        sys.exit(1)
    if as_json:
        click.echo(document.as_json())
    else:
        Console().print(table_of(document))
    if document.has_faults:
        sys.exit(1)
