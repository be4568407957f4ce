"""`light-scheduler worker`: the same application as `faust -A light_scheduler worker`, with settings as options."""

from __future__ import annotations

import sys
from dataclasses import fields

import click

from light_scheduler.settings import Settings

from .options import settings_options


@click.command("worker")
@settings_options(*(setting.name for setting in fields(Settings)))
def command(settings: Settings) -> None:
    """Run a worker until SIGTERM or Ctrl-C.

    Start as many as there are nodes, with the same application id: they share the partitions of the commands topics
    between them. Each needs a data folder and a web port of its own.
    """
    from light_scheduler.application import build

    app = build(settings)
    sys.argv = ["light-scheduler", "worker"]  # what Faust's own command line reads
    app.main()
