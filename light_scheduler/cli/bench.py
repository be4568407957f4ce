"""`light-scheduler bench`: measure a worker on this machine."""

from __future__ import annotations

import sys

import click
from rich.console import Console

from light_scheduler.bench.registry import SCENARIOS
from light_scheduler.host.foreground import StopRequested, stop_signals
from light_scheduler.settings import DIALECTS

from .durations import Duration
from .examples import examples
from .options import json_option

_SCENARIOS = "\b\nScenarios:\n" + "\n".join(f"  {name:<10}{summary}" for name, (_, summary) in SCENARIOS.items())

_EXAMPLES = examples("bench ingest --messages 20000 --repeat 1", "bench steady --rate 1000 --seconds 60 --json")


@click.command("bench", epilog=f"{_SCENARIOS}\n\n{_EXAMPLES}")
@click.argument("scenario", type=click.Choice(list(SCENARIOS)))
@click.option("--messages", type=click.IntRange(100, 100_000_000), help="Schedules a round.")
@click.option("--pending", type=click.IntRange(20_000, 100_000_000), help="Schedules that are pending, and not due.")
@click.option("--rate", type=click.IntRange(1, 1_000_000), help="Schedules that are due in a second.")
@click.option("--seconds", type=click.IntRange(1, 86_400), help="How long the load lasts.")
@click.option("--grid", "grid_ms", type=Duration(), help="Due times are multiples of it: 1s.")
@click.option("--partitions", type=click.IntRange(1, 1_000), help="Partitions of each topic.")
@click.option("--payload-bytes", type=click.IntRange(0, 100_000), help="Size of each payload.")
@click.option("--repeat", type=click.IntRange(1, 1_000), help="Rounds.")
@click.option("--workers", type=click.IntRange(1, 16), help="Workers that share the partitions.")
@click.option("--brokers", type=click.IntRange(1, 5), help="Brokers: with 3, replicas take over when one dies.")
@click.option("--stage-ahead", "stage_ahead_ms", type=Duration(), help="The worker's setting of this name: 70ms.")
@click.option("--pause", "pause_ms", type=Duration(), help="Time between faults, on average: 4s.")
@click.option("--dialect", type=click.Choice(DIALECTS), help="Dialect of the commands.")
@click.option("--seed", type=int, help="What payloads are drawn from; in chaos, all that happens.")
@json_option
def command(scenario: str, as_json: bool, **given: int | str | None) -> None:
    """Measure a worker on this machine, with a broker and topics of its own.

    Where a rate is measured each round begins with the ceiling: what the Kafka client alone does on the same broker.
    Everything is temporary. Exit code 1 if a message was missing, delivered twice or early, or another promise broken.

    Each round after the first takes the next seed. A round of chaos that failed keeps its logs and topics, says where,
    and is played again by its --seed.

    Defaults are a scenario's own and stand in its result; an option that does not apply to it is refused.
    """
    from light_scheduler.bench.options import chosen
    from light_scheduler.bench.progress import Progress
    from light_scheduler.bench.registry import scenario_named
    from light_scheduler.bench.run import run
    from light_scheduler.bench.table import table_of

    from .answers import quiet_kafka_client

    quiet_kafka_client()
    options = chosen(scenario, scenario_named(scenario).defaults, given)
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
