"""`light-scheduler outbox`: send what applications have booked in their databases."""

from __future__ import annotations

import asyncio
import logging
import signal
from typing import TYPE_CHECKING

import click

from light_scheduler.errors import ConfigurationError
from light_scheduler.settings import ENVIRONMENT_PREFIX, Settings

from .durations import Duration
from .examples import examples
from .options import settings_options
from .suggesting import SuggestingGroup

if TYPE_CHECKING:
    from light_scheduler.outbox import OutboxRelay

DEFAULT_NAME = "light_scheduler_outbox"


@click.group("outbox", cls=SuggestingGroup)
def command() -> None:
    """Send what applications have booked in their own SQL transactions. Needs the extra `outbox`."""


@command.command(
    "relay",
    epilog=examples(
        "outbox relay --database postgresql+psycopg://app@db/shop",
        "outbox relay --database sqlite:////var/lib/shop/shop.db --drain",
    ),
)
@click.option(
    "--database",
    required=True,
    envvar=f"{ENVIRONMENT_PREFIX}OUTBOX_DATABASE",
    show_envvar=True,
    metavar="URL",
    help="Database, as a URL of SQLAlchemy. Prefer the variable if the URL has a password.",
)
@click.option("--name", default=DEFAULT_NAME, show_default=True, metavar="NAME", help="Name of the outbox.")
@click.option("--commands-topic", default=None, metavar="TOPIC", help="Topic to send to. Default: APP_ID-commands.")
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
    help="How long the work of a relay that is gone waits for another relay.",
)
@click.option("--drain", is_flag=True, help="Send what is booked, then end.")
@settings_options("app_id", "broker", "log_level")
def relay(
    settings: Settings, database: str, name: str, commands_topic: str | None, poll: int, lease: int, drain: bool
) -> None:
    """Send booked commands to the commands topic, each exactly once, until SIGTERM or Ctrl-C.

    Run as many relays as you like: they share the work. While Kafka or the database cannot be reached, a relay tries
    again after up to 30 s.
    """
    try:
        from light_scheduler.outbox import OutboxRelay, RelayOptions
    except ImportError as error:
        raise ConfigurationError(
            "database", f"needs SQLAlchemy: pip install 'light-scheduler[outbox]' ({error})"
        ) from error

    logging.basicConfig(level=settings.log_level, format="%(asctime)s %(levelname)s %(name)s: %(message)s")
    options = RelayOptions(name, settings.app_id, commands_topic, poll / 1_000, lease / 1_000)
    made = OutboxRelay(database, settings.connection, options)
    if drain:
        click.echo(f"{asyncio.run(made.drain())} commands sent")
    else:
        asyncio.run(_until_signal(made))


async def _until_signal(relay: OutboxRelay) -> None:
    for name in (signal.SIGTERM, signal.SIGINT):
        asyncio.get_running_loop().add_signal_handler(name, relay.stop)
    await relay.run()
