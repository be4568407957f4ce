"""`light-scheduler broker`: a real single-node Kafka in the foreground."""

from __future__ import annotations

import sys
from pathlib import Path

import click

from light_scheduler.host.foreground import StopRequested, stop_signals

from .examples import examples


@click.command("broker", epilog=examples("broker", "broker --port 19092 --data-dir kafka-data"))
@click.option("--port", type=click.IntRange(1, 65_535), default=9092, show_default=True, help="Port on 127.0.0.1.")
@click.option(
    "--data-dir",
    type=click.Path(file_okay=False, path_type=Path),
    help="Folder to keep the topics in between runs. Default: a temporary folder.",
)
def command(port: int, data_dir: Path | None) -> None:
    """Run a real single-node Kafka broker in the foreground, until Ctrl-C or SIGTERM.

    For development and tests, not for production. The first start downloads Kafka (about 45 MB).
    """
    from light_scheduler.devkit.broker import EmbeddedBroker

    with stop_signals():
        try:
            with EmbeddedBroker(port=port, data_dir=data_dir) as broker:
                click.echo(f"Kafka is ready on {broker.bootstrap_servers} (pid {broker.pid}, {broker.data_dir})")
                return_code = broker.wait()
                click.echo(f"Error: Kafka ended with exit code {return_code}. Its log: {broker.log_file}", err=True)
                sys.exit(1)
        except StopRequested:
            return
