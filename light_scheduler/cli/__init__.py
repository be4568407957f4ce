"""The `light-scheduler` command. Each subcommand lives in the module of its name, which is imported on use.

Exit codes: 0 done, 1 refused or failed, 2 wrong usage.
"""

from __future__ import annotations

import sys

import click

from light_scheduler.errors import BrokerUnreachable, ConfigurationError, SchedulerError, WorkerUnreachable
from light_scheduler.settings import ENVIRONMENT_PREFIX
from light_scheduler.settings.values import is_unicode

from .lazy import LazyGroup
from .verbosity import verbosity_options

# Command -> (module in this package, one line of help).
COMMANDS = {
    "broker": ("broker", "Run a real single-node Kafka broker in the foreground."),
    "up": ("up", "Run a broker, its topics and a worker together."),
    "worker": ("worker", "Run a worker."),
    "topics": ("topics", "Create, check or grow the topics of an application."),
    "schedule": ("schedule", "Schedule a message, once or as a series."),
    "preview": ("preview", "Show when a schedule would fire, without a broker."),
    "dry-run": ("dry_run", "Show what commands would deliver, and which would be refused."),
    "cancel": ("cancel", "Cancel a schedule."),
    "pause": ("pause", "Pause a schedule: it does not fire until you resume it."),
    "resume": ("resume", "Resume a paused schedule."),
    "trigger": ("trigger", "Fire a schedule now."),
    "reschedule": ("reschedule", "Change when a schedule fires."),
    "complete": ("complete", "Report a firing as completed or failed."),
    "extend": ("extend", "Report that a firing is still being processed."),
    "get": ("get", "Show one schedule."),
    "list": ("list_schedules", "List schedules."),
    "history": ("history", "Show what happened to one schedule."),
    "why": ("why", "Explain why a schedule fired, will fire or does not fire."),
    "dead-letters": ("dead_letters", "List, show or redrive dead letters."),
    "delays": ("delays", "List, add or remove delay rules."),
    "tokens": ("tokens", "Create, list, rotate or revoke tokens of the HTTP API."),
    "outbox": ("outbox", "Send commands that applications have booked in SQL databases."),
    "tenants": ("tenants", "List, show or change the rules of tenants, or pause, resume or delete one."),
    "config": ("config", "List, show, choose or change contexts: names for clusters and how to reach them."),
    "completion": ("completion", "Print the script that makes a shell complete commands, ids and tenants."),
    "watch": ("watch", "Show events of schedules as they happen."),
    "doctor": ("doctor", "Check broker, topics, rights, access, clock and disk."),
    "bench": ("bench", "Measure a worker on this machine."),
    "pipeline": ("pipeline", "Run jobs on Spark: load, export, import, archive, audit, forecast, report."),
}


@click.group(
    cls=LazyGroup,
    package=__name__,
    modules=COMMANDS,
    params=list(verbosity_options()),
    context_settings={"help_option_names": ["-h", "--help"]},
)
@click.version_option(package_name="light-scheduler")
def cli() -> None:
    """Deliver each message to its Kafka topic at its time, exactly once.

    Give any setting as an option, as LIGHT_SCHEDULER_<NAME> in the environment, or in light-scheduler.toml.
    """


def main() -> None:
    """Run the command line; the entry point."""
    try:
        cli(standalone_mode=True)
    except ConfigurationError as error:
        click.echo(f"Error: {error}", err=True)
        sys.exit(2)
    except SchedulerError as error:
        click.echo(f"Error: {error}{_hint(error)}", err=True)
        sys.exit(1)
    except UnicodeEncodeError:
        wrong = next((argument for argument in sys.argv[1:] if not is_unicode(argument)), None)
        if wrong is None:
            raise
        click.echo(f"Error: {wrong!r} is not text in UTF-8. Use a terminal, or a script, in that encoding.", err=True)
        sys.exit(2)


def _hint(error: SchedulerError) -> str:
    """Return what to do about an error that every command may meet."""
    if isinstance(error, BrokerUnreachable):
        return (
            ". Start Kafka and a worker on this machine with `light-scheduler up`, or name your brokers with --broker "
            f"or {ENVIRONMENT_PREFIX}BROKER."
        )
    if isinstance(error, WorkerUnreachable):
        return (
            ". Start Kafka and a worker on this machine with `light-scheduler up`, or name a running worker with --url "
            f"or {ENVIRONMENT_PREFIX}WEB_HOST and {ENVIRONMENT_PREFIX}WEB_PORT."
        )
    return ""
