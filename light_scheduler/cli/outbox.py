"""`light-scheduler outbox`: sends commands that applications have booked in their databases."""

from __future__ import annotations

import asyncio
import logging
import signal
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

import click

from light_scheduler.errors import ConfigurationError
from light_scheduler.settings import ENVIRONMENT_PREFIX, Settings

from .durations import Duration
from .examples import examples
from .options import settings_options, tenant_option
from .output import Output, output_option
from .secret_options import no_password_in_url
from .suggesting import SuggestingGroup
from .verbosity import is_quiet

if TYPE_CHECKING:
    from light_scheduler.outbox import AjendaTakeover, OutboxRelay, RelayOptions, TakenOver

DEFAULT_NAME = "light_scheduler_outbox"

_DATABASE_VARIABLE = f"{ENVIRONMENT_PREFIX}OUTBOX_DATABASE"
_DATABASE = click.option(
    "--database",
    required=True,
    envvar=_DATABASE_VARIABLE,
    show_envvar=True,
    metavar="URL",
    callback=no_password_in_url(f"set the environment variable {_DATABASE_VARIABLE} to the URL"),
    help="Database, as a URL of SQLAlchemy. Pass a URL with a password in the variable: as an option it is refused.",
)
_NAME = click.option("--name", default=DEFAULT_NAME, show_default=True, metavar="NAME", help="Name of the outbox.")
_COMMANDS_TOPIC = click.option(
    "--commands-topic", default=None, metavar="TOPIC", help="Topic to send to. Default: APP_ID-commands."
)


@click.group("outbox", cls=SuggestingGroup)
def command() -> None:
    """Send commands that applications have booked in their SQL transactions. Needs the extra `outbox`."""


@command.command(
    "relay",
    epilog=examples(
        "outbox relay --database postgresql+psycopg://app@db/shop",
        "outbox relay --database sqlite:////var/lib/shop/shop.db --drain",
    ),
)
@_DATABASE
@_NAME
@_COMMANDS_TOPIC
@click.option(
    "--schema", default=None, metavar="NAME", help="Schema that the outbox is in. Default: that of the connection."
)
@click.option(
    "--poll",
    type=Duration(),
    default="500ms",
    show_default=True,
    metavar="DURATION",
    help="How often to look for bookings that PostgreSQL did not announce.",
)
@click.option(
    "--lease",
    type=Duration(),
    default="5s",
    show_default=True,
    metavar="DURATION",
    help="How long until another relay takes over the work of one that died.",
)
@click.option("--drain", is_flag=True, help="Send all booked commands, then exit.")
@output_option()
@settings_options("app_id", "broker", "log_level")
def relay(
    settings: Settings,
    database: str,
    name: str,
    commands_topic: str | None,
    schema: str | None,
    poll: int,
    lease: int,
    drain: bool,
    output: Output,
) -> None:
    """Send booked commands to the commands topic, each exactly once, until SIGTERM or Ctrl-C.

    Run as many relays as you like: they share the work. While Kafka or the database cannot be reached, a relay tries
    again after up to 30 s. Only if it cannot reach the database when it starts, it ends with an error.

    With --drain, exit code 1 means that this run refused a command, or that Kafka or the database failed.
    """
    with _extra():
        from light_scheduler.outbox import OutboxRelay, RelayOptions

    _log(settings)
    options = RelayOptions(name, settings.app_id, commands_topic, poll / 1_000, lease / 1_000, schema)
    made = OutboxRelay(database, settings.connection, options)
    if not drain:
        with _failures():
            asyncio.run(_until_signal(made))
        return
    try:
        with _failures():
            asyncio.run(made.drain())
    finally:
        if made.sent or made.refused or made.refused_rows is not None:  # else it failed before it began
            _print_drained(made, options, output)
    if made.refused:
        raise click.ClickException(
            f"{made.refused} commands were refused. They stay in table {options.full_name}: their rows are among those "
            "WHERE refused IS NOT NULL, and that column has the reasons"
        )


@command.command(
    "import-ajenda",
    epilog=examples(
        "outbox import-ajenda --database postgresql+psycopg://app@db/shop --topic mails --target-topic mails --dry-run",
        "outbox import-ajenda --database postgresql+psycopg://app@db/shop --topic mails --target-topic mails --follow",
    ),
)
@_DATABASE
@click.option("--topic", required=True, metavar="TOPIC", help="Ajenda's topic: its table is ajenda_TOPIC.")
@click.option("--target-topic", required=True, metavar="TOPIC", help="Kafka topic that the messages go to.")
@click.option("--schema", default="public", show_default=True, metavar="NAME", help="Schema of Ajenda's tables.")
@tenant_option
@click.option("--follow", is_flag=True, help="Also take over new appointments, until SIGTERM or Ctrl-C.")
@click.option("--dry-run", is_flag=True, help="Print what would be taken over, and change nothing.")
@_NAME
@_COMMANDS_TOPIC
@output_option()
@settings_options("app_id", "broker", "log_level")
def import_ajenda(
    settings: Settings,
    database: str,
    topic: str,
    target_topic: str,
    schema: str,
    tenant: str,
    follow: bool,
    dry_run: bool,
    name: str,
    commands_topic: str | None,
    output: Output,
) -> None:
    """Turn the appointments of an Ajenda topic into schedules, each exactly once, and delete them there.

    Ajenda can keep running. Appointments that its consumers are processing stay with Ajenda. Ids are TOPIC-UUID, and
    TOPIC-periodic-UUID for periodic appointments. Creates the outbox in Ajenda's database. You can stop or kill it, and
    start it again. Exit code 1: an appointment could not become a schedule.
    """
    with _extra():
        from light_scheduler.outbox import AjendaTakeover, RelayOptions

    _log(settings)
    options = RelayOptions(name, settings.app_id, commands_topic)
    takeover = AjendaTakeover(database, topic, target_topic, options, schema=schema, tenant=tenant)
    with _failures():
        done = asyncio.run(takeover.preview() if dry_run else _take_over(takeover, settings, follow))
    if output.is_table:
        _print(done, is_preview=dry_run)
    else:
        output.print(done)
    if done.refused:
        sys.exit(1)


def _print_drained(relay: OutboxRelay, options: RelayOptions, output: Output) -> None:
    if not output.is_table:
        output.print({"sent": relay.sent, "refused": relay.refused, "refused_rows": relay.refused_rows})
        return
    rows = relay.refused if relay.refused_rows is None else relay.refused_rows
    click.echo(f"{relay.sent} commands sent" + (f", {relay.refused} refused" if relay.refused else ""))
    if rows:
        click.echo(f"{rows} refused rows wait for you in table {options.full_name}, WHERE refused IS NOT NULL")


def _log(settings: Settings) -> None:
    """Log to standard error; if quiet, only errors."""
    level = logging.ERROR if is_quiet() else settings.log_level
    logging.basicConfig(level=level, format="%(asctime)s %(levelname)s %(name)s: %(message)s")


async def _take_over(takeover: AjendaTakeover, settings: Settings, follow: bool) -> TakenOver:
    """Take over appointments until everything is sent. The first signal asks to stop; the second stops without waiting
    for Kafka."""
    running = asyncio.ensure_future(takeover.run(settings.connection, follow=follow))

    def stop() -> None:
        if takeover.is_stopping:
            running.cancel()
        else:
            click.echo("Stopping once the commands taken over so far are in Kafka. Repeat to stop at once.", err=True)
            takeover.stop()

    for name in (signal.SIGTERM, signal.SIGINT):
        asyncio.get_running_loop().add_signal_handler(name, stop)
    try:
        return await running
    except asyncio.CancelledError:
        reason = (
            "stopped before the commands taken over so far were in Kafka. Run the import again, or `outbox relay`, to "
            "send them."
        )
        raise click.ClickException(reason) from None


def _print(done: TakenOver, *, is_preview: bool) -> None:
    for id, reason in done.refused.items():
        click.echo(f"refused {id}: {reason}")
    verb = "would be taken over" if is_preview else "taken over"
    click.echo(f"{done.appointments} appointments and {done.periodic} periodic ones {verb}, {done.remaining} rows left")


@contextmanager
def _extra() -> Iterator[None]:
    """Report a missing extra."""
    try:
        yield
    except ImportError as error:
        raise ConfigurationError(
            "database", f"needs SQLAlchemy: pip install 'light-scheduler[outbox]' ({error})"
        ) from error


@contextmanager
def _failures() -> Iterator[None]:
    """Report in one line that the database cannot be reached or refuses a statement."""
    from sqlalchemy.exc import SQLAlchemyError

    try:
        yield
    except SQLAlchemyError as error:
        reason = " ".join(str(getattr(error, "orig", None) or error).split())
        raise click.ClickException(
            f"the database failed: {reason}. Check --database, and the rights of its user."
        ) from error


async def _until_signal(relay: OutboxRelay) -> None:
    for name in (signal.SIGTERM, signal.SIGINT):
        asyncio.get_running_loop().add_signal_handler(name, relay.stop)
    await relay.run()
