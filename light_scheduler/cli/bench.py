"""`light-scheduler bench`: measure a worker on this machine."""

from __future__ import annotations

import sys

import click
from rich.console import Console

from light_scheduler.bench.registry import SCENARIOS
from light_scheduler.connection.security import MECHANISMS, PROTOCOLS
from light_scheduler.host.foreground import StopRequested, stop_signals
from light_scheduler.settings.values import DIALECTS

from .durations import Duration
from .examples import examples
from .output import Output, output_option
from .verbosity import error_console, note

_SCENARIOS = "\b\nScenarios:\n" + "\n".join(f"  {name:<12}{summary}" for name, (_, summary) in SCENARIOS.items())

_EXAMPLES = examples("bench ingest --messages 20000 --repeat 1", "bench steady --rate 1000 --seconds 60 --json")


@click.command("bench", epilog=f"{_SCENARIOS}\n\n{_EXAMPLES}")
@click.argument("scenario", type=click.Choice(list(SCENARIOS)))
@click.option("--messages", type=click.IntRange(100, 100_000_000), help="Number of schedules in a round.")
@click.option(
    "--pending", type=click.IntRange(100, 100_000_000), help="Number of schedules that are pending and not due."
)
@click.option("--rate", type=click.IntRange(1, 1_000_000), help="Number of schedules that are due per second.")
@click.option("--seconds", type=click.IntRange(1, 86_400), help="How long the load lasts.")
@click.option("--grid", "grid_ms", type=Duration(), help="Round due times to a multiple of this: 1s.")
@click.option("--partitions", type=click.IntRange(1, 1_000), help="Number of partitions of each topic.")
@click.option("--payload-bytes", type=click.IntRange(0, 100_000), help="Size of each payload.")
@click.option("--repeat", type=click.IntRange(1, 1_000), help="Number of rounds.")
@click.option("--workers", type=click.IntRange(1, 16), help="Number of workers.")
@click.option(
    "--brokers", type=click.IntRange(1, 5), help="Number of brokers. With 3, replicas take over when one dies."
)
@click.option("--stage-ahead", "stage_ahead_ms", type=Duration(), help="Setting stage_ahead of the workers: 70ms.")
@click.option("--pause", "pause_ms", type=Duration(), help="Average time between faults: 4s.")
@click.option("--dialect", type=click.Choice(DIALECTS), help="Dialect of the commands.")
@click.option(
    "--framed", is_flag=True, default=None, help="Frame Avro commands, and start a schema registry for the worker."
)
@click.option(
    "--security-protocol", type=click.Choice(PROTOCOLS), help="How the worker connects to Kafka. SSL is mutual TLS."
)
@click.option("--sasl-mechanism", type=click.Choice(MECHANISMS), help="How the worker logs in with SASL: PLAIN.")
@click.option("--seed", type=int, help="Seed of the random payloads. In chaos: of the whole workload and its faults.")
@output_option()
def command(scenario: str, output: Output, **given: int | str | None) -> None:
    """Measure a worker on this machine, with its own broker and topics.

    Scenarios that measure a rate first measure the ceiling: what the Kafka client alone reaches on the same broker. All
    data are temporary. Exit code 1: a message was missing, duplicate or early, or another guarantee was broken.

    Each round after the first uses the next seed. A failed round of chaos keeps its logs and topics and prints where
    they are. Repeat it with its --seed.

    Each scenario has its own defaults, which the result names. Options that do not apply to it are refused.
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
        with stop_signals(), Progress(error_console()) as progress:
            document = run(scenario, options, progress)
    except StopRequested:
        note("Stopped.")
        sys.exit(1)
    if output.is_table:
        Console().print(table_of(document))
    elif output.format == "json":
        click.echo(document.as_json())
    else:
        output.print(document)
    if document.has_faults:
        sys.exit(1)
