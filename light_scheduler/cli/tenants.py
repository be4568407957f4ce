"""`light-scheduler tenants`: rules of tenants. Works directly on Kafka: it needs rights there, but no token and no
worker."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING, Any, TypeVar

import click
from rich.table import Table

from light_scheduler.clock import SystemClock
from light_scheduler.settings import Settings
from light_scheduler.wire.instants import format_instant

from .completed_values import tenants
from .examples import examples
from .on_kafka import READ_TIMEOUT_S, caller, on_kafka
from .options import settings_options
from .output import Output, output_option
from .schedule_output import print_whole, shown
from .suggesting import SuggestingGroup
from .verbosity import note, warn

if TYPE_CHECKING:
    from light_scheduler.model.tenant_rules import Tenant, TenantRules
    from light_scheduler.tenants import TenantStore

T = TypeVar("T")

_SETTINGS = ("app_id", "broker")
_RULES = (
    "targets",
    "default_target",
    "distribution",
    "max_payload_bytes",
    "max_pending",
    "commands_per_second",
    "over_rate",
    "firings_per_second",
    "weight",
)
_OPTIONS = [name.replace("_", "-").replace("targets", "target") for name in _RULES]


@click.group("tenants", cls=SuggestingGroup)
def command() -> None:
    """List, show or change rules of tenants; pause, resume or delete a tenant. Workers follow within 2 seconds."""


@command.command("list", epilog=examples("tenants list", "tenants list --json"))
@output_option()
@settings_options(*_SETTINGS)
def list_tenants(settings: Settings, output: Output) -> None:
    """List the tenants that have rules, and those that were paused or deleted."""
    from light_scheduler.web.tenant_documents import TenantList

    listed = _with_store(settings, lambda store: _at_once(TenantList.of(store.book)))
    if not output.is_table:
        output.print(listed, rows="tenants")
        return
    table = Table(box=None, pad_edge=False)
    for title in ("tenant", "state", "rules"):
        table.add_column(title, no_wrap=True)
    for tenant in listed.tenants:
        rules = " ".join(f"{name}={value}" for name, value in _rows_of(tenant.rules))
        table.add_row(tenant.name, _state(tenant), shown(rules or "none"))
    print_whole(table)
    if not listed.tenants:
        note("No tenant has rules.")


@command.command("show", epilog=examples("tenants show shop"))
@click.argument("tenant", shell_complete=tenants)
@output_option()
@settings_options(*_SETTINGS)
def show(settings: Settings, tenant: str, output: Output) -> None:
    """Show the rules and the state of TENANT."""
    found = _with_store(settings, lambda store: _at_once(store.book.get(tenant)))
    if found is None:
        raise click.ClickException(f"tenant {tenant} has no rules: it may do what the settings allow")
    _print(found, output)


@command.command(
    "set",
    epilog=examples(
        "tenants set shop --target 'shop-*' --default-target shop-events",
        "tenants set shop --firings-per-second 500 --weight 3",
        "tenants set shop --lift target",
    ),
)
@click.argument("tenant", shell_complete=tenants)
@click.option(
    "--target",
    "targets",
    multiple=True,
    metavar="PATTERN",
    help="Topic that messages may go to; * stands for any characters. Can be repeated.",
)
@click.option("--default-target", metavar="TOPIC", help="Topic for commands that name no topic.")
@click.option(
    "--distribution",
    metavar="key|round-robin|partition:N|header:NAME",
    help="How to choose the partition of the target topic.",
)
@click.option("--max-payload-bytes", type=int, metavar="BYTES", help="Largest payload.")
@click.option(
    "--max-pending", type=int, metavar="N", help="Maximum number of pending schedules. New ones above it are rejected."
)
@click.option(
    "--commands-per-second", type=float, metavar="RATE", help="Commands above this rate are rejected, or delayed."
)
@click.option(
    "--over-rate",
    type=click.Choice(["reject", "delay"]),
    help="What happens to commands above --commands-per-second. By default they are rejected.",
)
@click.option("--firings-per-second", type=float, metavar="RATE", help="Firings above this rate wait.")
@click.option(
    "--weight", type=int, metavar="N", help="Share of firings while tenants have more due than the workers can deliver."
)
@click.option("--lift", multiple=True, type=click.Choice(_OPTIONS), help="Rule to remove. Can be repeated.")
@output_option()
@settings_options(*_SETTINGS)
def set_rules(settings: Settings, tenant: str, lift: tuple[str, ...], output: Output, **given: Any) -> None:
    """Change rules of TENANT. Other rules stay as they are."""
    from msgspec.structs import replace

    from light_scheduler.model.tenant_rules import OverRate

    changes = {name: value for name, value in given.items() if value not in (None, ())}
    if "over_rate" in changes:
        changes["over_rate"] = OverRate(changes["over_rate"])
    lifted = {name: None for name, option in zip(_RULES, _OPTIONS, strict=True) if option in lift}
    if twice := sorted(changes.keys() & lifted.keys()):
        raise click.UsageError(f"{', '.join(twice)}: give a rule or lift it, not both")
    if not changes and not lifted:
        raise click.UsageError(f"give a rule to set, or --lift a rule: {', '.join(_OPTIONS)}")

    def changed(rules: TenantRules) -> TenantRules:
        return replace(rules, **changes, **lifted)

    found = _changed(settings, lambda store: store.set_rules(tenant, changed, by=caller()))
    if found.rules.over_rate is not None and found.rules.commands_per_second is None:
        warn("--over-rate has no effect until the tenant has a rate: set --commands-per-second, too")
    _print(found, output)


@command.command("pause", epilog=examples("tenants pause shop"))
@click.argument("tenant", shell_complete=tenants)
@output_option()
@settings_options(*_SETTINGS)
def pause(settings: Settings, tenant: str, output: Output) -> None:
    """Pause TENANT: its schedules do not fire until you resume it. Its commands still take effect."""
    _set_state(settings, tenant, "paused", output)


@command.command("resume", epilog=examples("tenants resume shop"))
@click.argument("tenant", shell_complete=tenants)
@output_option()
@settings_options(*_SETTINGS)
def resume(settings: Settings, tenant: str, output: Output) -> None:
    """Resume TENANT after a pause, or undo its deletion. Schedules that were removed stay removed."""
    _set_state(settings, tenant, "active", output)


@command.command("delete", epilog=examples("tenants delete shop", "tenants delete shop --yes"))
@click.argument("tenant", shell_complete=tenants)
@click.option("--yes", is_flag=True, help="Do not ask for confirmation.")
@output_option()
@settings_options(*_SETTINGS)
def delete(settings: Settings, tenant: str, yes: bool, output: Output) -> None:
    """Delete TENANT with all its schedules. Its commands are rejected from then on."""
    if not yes:
        click.confirm(f"Remove all schedules of tenant {tenant}?", abort=True, err=True)
    _set_state(settings, tenant, "deleted", output)


def _set_state(settings: Settings, tenant: str, state: str, output: Output) -> None:
    from light_scheduler.model.tenant_rules import TenantState

    _print(_changed(settings, lambda store: store.set_state(tenant, TenantState(state), by=caller())), output)


def _changed(settings: Settings, change: Callable[[TenantStore], Awaitable[Tenant]]) -> Tenant:
    from light_scheduler.model.tenant_rules import TenantRulesError, TenantWasDeleted

    try:
        return _with_store(settings, change)
    except TenantWasDeleted as error:
        raise click.ClickException(str(error)) from error
    except TenantRulesError as error:
        raise click.UsageError(str(error)) from error


def _with_store(settings: Settings, use: Callable[[TenantStore], Awaitable[T]]) -> T:
    from light_scheduler.tenants import opened_tenants

    async def used() -> T:
        async with opened_tenants(settings.connection, settings.topics, SystemClock(), READ_TIMEOUT_S) as store:
            return await use(store)

    return on_kafka(settings, used)


async def _at_once(value: T) -> T:
    return value


def _print(tenant: Tenant, output: Output) -> None:
    from light_scheduler.web.tenant_documents import TenantDocument

    if not output.is_table:
        output.print(TenantDocument.of(tenant))
        return
    click.echo(f"{tenant.name}: {_state(tenant)}, changed {format_instant(tenant.changed_at)} by {tenant.changed_by}")
    for name, value in _rows_of(tenant.rules):
        click.echo(f"  {name}: {value}")


def _state(tenant: Any) -> str:
    return f"{tenant.state}" if tenant.is_readable else "paused: a newer version wrote its rules"


def _rows_of(rules: TenantRules) -> list[tuple[str, str]]:
    values = ((option, getattr(rules, name)) for name, option in zip(_RULES, _OPTIONS, strict=True))
    return [
        (
            name,
            ",".join(value) if isinstance(value, tuple) else f"{value:g}" if isinstance(value, float) else str(value),
        )
        for name, value in values
        if value is not None
    ]
