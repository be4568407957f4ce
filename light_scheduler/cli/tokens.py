"""`light-scheduler tokens`: tokens of the HTTP API. Works directly on Kafka: it needs rights there, but no token."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING, TypeVar

import click
from rich.table import Table

from light_scheduler.access.identity import Role
from light_scheduler.clock import SystemClock
from light_scheduler.settings import Settings
from light_scheduler.wire.instants import format_instant

from .durations import Duration
from .examples import examples
from .on_kafka import READ_TIMEOUT_S, caller, on_kafka
from .options import settings_options
from .output import Output, output_option
from .schedule_output import print_whole, relative, shown
from .suggesting import SuggestingGroup
from .verbosity import note

if TYPE_CHECKING:
    from light_scheduler.access.store import TokenStore
    from light_scheduler.access.tokens import Token
    from light_scheduler.connection import Secret
    from light_scheduler.web.access.token_documents import NewTokenDocument, TokenList

T = TypeVar("T")

_SETTINGS = ("app_id", "broker")


@click.group("tokens", cls=SuggestingGroup)
def command() -> None:
    """Create, list, rotate or revoke the tokens of the HTTP API. Once there is a token, every request needs one."""


@command.command(
    "create",
    epilog=examples(
        "tokens create ops --role admin --all-tenants",
        "tokens create shop --role write --tenant shop --tenant shop-test --expires-in 90d",
        "tokens create prometheus --role metrics --all-tenants",
    ),
)
@click.argument("name")
@click.option(
    "--role",
    type=click.Choice([role.value for role in Role]),
    required=True,
    help="What the token may do; each role includes those before it.",
)
@click.option("--tenant", "tenants", multiple=True, metavar="TENANT", help="Tenant to see and change. Can be repeated.")
@click.option("--all-tenants", is_flag=True, help="See and change all tenants, and what they share.")
@click.option(
    "--expires-in",
    type=Duration(),
    metavar="DURATION",
    help="How long the token is valid. Default: it does not expire.",
)
@output_option()
@settings_options(*_SETTINGS)
def create(
    settings: Settings,
    name: str,
    role: str,
    tenants: tuple[str, ...],
    all_tenants: bool,
    expires_in: int | None,
    output: Output,
) -> None:
    """Create a token for NAME and print it. It is shown only once. All workers accept it within 2 seconds."""
    if bool(tenants) == all_tenants:
        raise click.UsageError("give --tenant for each tenant that the token is for, or --all-tenants")
    bound = None if all_tenants else tenants
    _print_new(
        _changed(settings, lambda store: store.create(name, Role(role), bound, by=caller(), lifetime=expires_in)),
        output,
    )


@command.command("list", epilog=examples("tokens list", "tokens list --json"))
@output_option()
@settings_options(*_SETTINGS)
def list_tokens(settings: Settings, output: Output) -> None:
    """List the tokens, including revoked ones."""
    from light_scheduler.web.access.token_documents import TokenList

    now = SystemClock().now()
    listed = _with_store(settings, lambda store: _at_once(TokenList.of(store.book, now)))
    if output.is_table:
        _show(listed, now)
    else:
        output.print(listed, rows="tokens")


@command.command("rotate", epilog=examples("tokens rotate 1f0c29ab34de", "tokens rotate 1f0c29ab34de --keep 0"))
@click.argument("id")
@click.option("--keep", type=Duration(), default="1d", show_default=True, help="How long the old secret stays valid.")
@output_option()
@settings_options(*_SETTINGS)
def rotate(settings: Settings, id: str, keep: int, output: Output) -> None:
    """Give the token ID a new secret and print it. Name, role and tenants stay the same."""
    _print_new(_changed(settings, lambda store: store.rotate(id, keep=keep, by=caller())), output)


@command.command("revoke", epilog=examples("tokens revoke 1f0c29ab34de"))
@click.argument("id")
@output_option()
@settings_options(*_SETTINGS)
def revoke(settings: Settings, id: str, output: Output) -> None:
    """Revoke the token ID permanently. All workers refuse it within 2 seconds."""
    from light_scheduler.web.access.token_documents import TokenDocument

    async def revoked(store: TokenStore) -> TokenDocument:
        token = await store.revoke(id, by=caller())
        return TokenDocument.of(token, store.book, SystemClock().now())

    document = _with_store(settings, revoked)
    if output.is_table:
        click.echo(f"{document.id} revoked")
    else:
        output.print(document)


def _changed(settings: Settings, change: Callable[[TokenStore], Awaitable[tuple[Token, Secret]]]) -> NewTokenDocument:
    from light_scheduler.web.access.token_documents import NewTokenDocument

    async def changed(store: TokenStore) -> NewTokenDocument:
        token, text = await change(store)
        return NewTokenDocument.of(token, text, store.book, SystemClock().now())

    return _with_store(settings, changed)


def _with_store(settings: Settings, use: Callable[[TokenStore], Awaitable[T]]) -> T:
    from light_scheduler.access.store import opened_store
    from light_scheduler.access.tokens import TokenError, TokenUnusable

    async def used() -> T:
        async with opened_store(settings.connection, settings.topics, SystemClock(), READ_TIMEOUT_S) as store:
            return await use(store)

    try:
        return on_kafka(settings, used)
    except TokenUnusable as error:
        raise click.ClickException(str(error)) from error
    except TokenError as error:
        raise click.UsageError(str(error)) from error


async def _at_once(value: T) -> T:
    return value


def _print_new(document: NewTokenDocument, output: Output) -> None:
    if not output.is_table:
        output.print(document)
        return
    click.echo(document.token)
    about = document.about
    tenants = "all tenants" if about.tenants is None else ", ".join(about.tenants)
    until = "" if about.expires_at is None else f", valid until {format_instant(about.expires_at)}"
    note(
        f"Token {about.id} of {about.name}: {about.role}, {tenants}{until}. Keep the text above: it is not "
        "stored and cannot be shown again."
    )


def _show(listed: TokenList, now: int) -> None:
    table = Table(box=None, pad_edge=False)
    for name in ("id", "name", "role", "tenants", "state", "expires", "last used", "texts"):
        table.add_column(name, no_wrap=True)
    for token in listed.tokens:
        table.add_row(
            token.id,
            shown(token.name),
            token.role,
            "all" if token.tenants is None else ",".join(token.tenants),
            token.state,
            "never" if token.expires_at is None else relative(token.expires_at - now),
            "never" if token.last_used_at is None else relative(token.last_used_at - now),
            str(token.texts),
        )
    print_whole(table)
    if not listed.tokens:
        note("No tokens: every request over HTTP may do everything.")
