"""`light-scheduler up`: runs a broker, its topics and workers together."""

from __future__ import annotations

import dataclasses
import sys
import time
from contextlib import ExitStack

import click
from rich.console import Console
from rich.markup import escape

from light_scheduler.devkit.broker import EmbeddedBroker
from light_scheduler.devkit.supervisor import Supervisor
from light_scheduler.devkit.worker_process import WorkerProcess
from light_scheduler.errors import ConfigurationError
from light_scheduler.host.foreground import StopRequested, stop_signals
from light_scheduler.host.ports import port_is_free
from light_scheduler.settings import ENVIRONMENT_PREFIX, SECURITY_SETTINGS, Settings

from .context import chosen_context, named_context
from .examples import examples
from .options import settings_options

_TARGET = "reminders"
_WATCH_INTERVAL_S = 0.2
_DEFAULT = Settings()


@click.command("up", epilog=examples("up", "up --workers 2 --broker-port 19092 --web-port 7066 --data-dir try"))
@click.option(
    "--broker-port", type=click.IntRange(1, 65_535), default=9092, show_default=True, help="Port of Kafka on 127.0.0.1."
)
@click.option("--workers", type=click.IntRange(1, 16), default=1, show_default=True, help="Number of workers.")
@settings_options(
    "app_id",
    "data_dir",
    "web_host",
    "web_port",
    "insecure",
    "partitions",
    "commands_topics",
    "log_level",
    in_context=False,
)
def command(settings: Settings, broker_port: int, workers: int) -> None:
    """Run Kafka, its topics and workers on this machine until Ctrl-C or SIGTERM. Print commands to try.

    All data is kept in the data folder: the next `up` continues with it. Worker n listens on WEB_PORT + n - 1.
    """
    console = Console()
    with stop_signals():
        try:
            _run(settings, broker_port, workers, console)
        except StopRequested:
            console.print("Stopped.")


def _run(settings: Settings, broker_port: int, count: int, console: Console) -> None:
    from light_scheduler.kafka.topic_admin import create_topics

    workers = [_worker(settings, broker_port, number) for number in range(1, count + 1)]
    _refuse_ports_in_use(workers)
    with ExitStack() as running:
        broker = EmbeddedBroker(port=broker_port, data_dir=settings.data_dir / "kafka")
        running.callback(lambda: _stop(broker, workers, console))
        with console.status("Starting Kafka"):
            broker.start()
        console.print(f"Kafka answers on {broker.bootstrap_servers}")
        with console.status("Creating topics"):
            create_topics(workers[0].settings)
            _create_target(workers[0].settings)
        with console.status("Starting workers"):
            for worker in workers:
                worker.start()
            for worker in workers:
                worker.wait_ready()
                console.print(f"Worker {worker.pid} is ready on {worker.url}, log in {escape(str(worker.log))}")
        console.print(_what_to_try(workers[0].settings), markup=False, highlight=False, soft_wrap=True)
        supervisor = Supervisor(workers, lambda sentence: console.print(sentence, markup=False, soft_wrap=True))
        while broker.is_running:
            supervisor.check()
            time.sleep(_WATCH_INTERVAL_S)
        console.print(f"Error: Kafka ended unexpectedly. Its log: {escape(str(broker.log_file))}")
    sys.exit(1)


def _worker(settings: Settings, broker_port: int, number: int) -> WorkerProcess:
    own = dataclasses.replace(
        settings,
        **{name: getattr(_DEFAULT, name) for name in SECURITY_SETTINGS},  # its own broker needs no login
        broker=f"kafka://127.0.0.1:{broker_port}",
        data_dir=settings.data_dir / f"worker-{number}",
        web_port=settings.web_port + number - 1,
        processes=1,
        instance_id=f"{settings.app_id}-up-{number}",
    )
    return WorkerProcess(own, settings.data_dir / "logs" / f"worker-{number}.log")


def _refuse_ports_in_use(workers: list[WorkerProcess]) -> None:
    for worker in workers:
        settings = worker.settings
        if not port_is_free(settings.web_port, settings.web_host):
            raise ConfigurationError(
                "--web-port",
                f"port {settings.web_port} of {settings.web_host} is in use: choose another port, or stop what uses it",
            )


def _create_target(settings: Settings) -> None:
    """Create a topic to deliver to: the broker does not create topics automatically."""
    from light_scheduler.kafka.topic_admin import create_topic

    create_topic(settings.bootstrap_servers, _TARGET, settings.partitions)


def _stop(broker: EmbeddedBroker, workers: list[WorkerProcess], console: Console) -> None:
    """Stop the workers first: they need the broker to leave their group and close their transactions."""
    with console.status("Stopping"):
        for worker in workers:
            worker.ask_to_stop()
        for worker in workers:
            worker.stop()
        broker.close()


def _what_to_try(settings: Settings) -> str:
    return f"""{_what_is_first(settings)}
Try, in another terminal:
  light-scheduler schedule --id hello --after 30s --target-topic {_TARGET} --payload "Hello, later"
  light-scheduler list
  light-scheduler watch
  light-scheduler cancel hello
  curl {settings.web_url}/api/v1/tenants/default/schedules
With kcat, as from any language:
  echo 'order-1:pay!' | kcat -P -b {settings.bootstrap_servers} -t {settings.topics.commands} -K: \\
      -X partitioner=murmur2_random -H schedule-after=10s -H schedule-target-topic={_TARGET}
  kcat -C -b {settings.bootstrap_servers} -t {_TARGET} -X isolation.level=read_committed -f '%k %s %h\\n'
Ctrl-C stops everything. The data stays in {settings.data_dir.parent.absolute()}."""


def _what_is_first(settings: Settings) -> str:
    """Return the steps needed before the commands reach these workers: commands use a context, `up` does not."""
    named, chosen = named_context(), chosen_context()
    steps = [f"unset {ENVIRONMENT_PREFIX}CONTEXT"] if named else []
    steps += ["light-scheduler config use --none"] if chosen else []
    steps += [
        f"export {ENVIRONMENT_PREFIX}{name.upper()}={getattr(settings, name)}"
        for name in ("app_id", "broker", "web_host", "web_port")
        if getattr(settings, name) != getattr(_DEFAULT, name)
    ]
    if not steps:
        return ""
    notes = [f"Otherwise, the commands below work in the context {named or chosen}."] if named or chosen else []
    notes += [f"To work in {chosen} again: light-scheduler config use {chosen}"] if chosen else []
    return "\n".join(["", "In another terminal, first:", *(f"  {step}" for step in steps), *notes, ""])
