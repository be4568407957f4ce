"""`light-scheduler worker`: the same as `faust -A light_scheduler worker`, with settings as options."""

from __future__ import annotations

import sys
from dataclasses import fields

import click

from light_scheduler.errors import ConfigurationError
from light_scheduler.host.cores import cores
from light_scheduler.host.systemd import Notifications
from light_scheduler.processes import count_of
from light_scheduler.settings import Settings

from .examples import examples
from .options import settings_options


@click.command(
    "worker",
    epilog=examples(
        "worker --broker kafka://kafka-1:9092,kafka-2:9092",
        "worker --data-dir state-2 --web-port 6067 --instance-id worker-2",
        "worker --processes auto --web-host node-1 --data-dir /var/lib/light-scheduler",
    ),
)
@settings_options(*(setting.name for setting in fields(Settings)), in_context=False)
def command(settings: Settings) -> None:
    """Run a worker until SIGTERM or Ctrl-C.

    Workers with the same application id share the partitions of the commands topics. A worker uses one processor core:
    `--processes auto` runs one worker process per core, all behind one web port, and restarts those that end. On
    SIGTERM or Ctrl-C the processes end in order, or are killed after 25 s; a second signal kills them at once. In a
    systemd unit with Type=notify, a single process has a supervisor too, which tells systemd when it is ready.

    Give each node its own data folder, and on the same machine its own web ports.
    """
    count = count_of(settings, cores())
    if count > 1 or Notifications().is_wanted:  # systemd waits for the supervisor, even with one process
        from light_scheduler.node import run

        sys.exit(run(settings, count))
    from light_scheduler.host.collector import paused

    with paused():
        from light_scheduler.application import build

        app = build(settings)
    sys.argv[:] = ["light-scheduler", "worker"]  # Faust's own command line reads this very list
    try:
        app.main()
    except SystemExit as end:
        sys.exit(2 if isinstance(app.ended_by, ConfigurationError) else end.code)
