"""`light-scheduler worker`: the same application as `faust -A light_scheduler worker`, with settings as options."""

from __future__ import annotations

import sys
from dataclasses import fields

import click

from light_scheduler.settings import Settings

from .examples import examples
from .options import settings_options


@click.command(
    "worker",
    epilog=examples(
        "worker --broker kafka://kafka-1:9092,kafka-2:9092",
        "worker --data-dir state-2 --web-port 6067 --instance-id worker-2",
    ),
)
@settings_options(*(setting.name for setting in fields(Settings)))
def command(settings: Settings) -> None:
    """Run a worker until SIGTERM or Ctrl-C.

    Workers with the same application id share the partitions of the commands topics. Start one per processor core. Give
    each its own data folder, and on the same machine its own web port.
    """
    from light_scheduler.application import build

    app = build(settings)
    sys.argv = ["light-scheduler", "worker"]  # what Faust's own command line reads
    app.main()
