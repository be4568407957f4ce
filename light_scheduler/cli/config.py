"""`light-scheduler config`: contexts, which are names for clusters and how to reach them."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import fields
from typing import Any, TypeVar

import click
from rich.table import Table

from light_scheduler.contexts import (
    CONTEXT_SETTINGS,
    OF_COMMANDS,
    OUTPUT_FORMATS,
    Contexts,
    change_contexts,
    contexts_path,
    load_contexts,
    without_login,
)
from light_scheduler.errors import ConfigurationError
from light_scheduler.settings import Settings
from light_scheduler.wire.fields import parse_tenant

from .context import context_names
from .examples import examples
from .options import declared_option
from .output import Output, output_option
from .schedule_output import print_whole, shown
from .suggesting import SuggestingGroup
from .verbosity import note

F = TypeVar("F", bound=Callable[..., Any])

_HELP = {setting.name: setting.metadata["help"] for setting in fields(Settings)}


def _values(function: F) -> F:
    """Add an option for every setting that a context can contain."""
    command: Any = function
    for name in reversed(CONTEXT_SETTINGS):
        command = declared_option(name, _HELP[name])(command)
    command = click.option("--tenant", help="Tenant of schedules.")(command)
    command = click.option("--output", type=click.Choice(OUTPUT_FORMATS), help="How to print data.")(command)
    return click.option("--url", metavar="URL", help="Address of any worker.")(command)  # type: ignore[no-any-return]


@click.group("config", cls=SuggestingGroup)
def command() -> None:
    """List, show, choose or change contexts: names for clusters, each with brokers, a worker and a file with a token.

    An option beats the environment, which beats the context in use, which beats light-scheduler.toml.
    """


@command.command("list", epilog=examples("config list", "config list --json"))
@output_option()
def list_contexts(output: Output) -> None:
    """List the contexts. A star marks the one in use."""
    contexts = _contexts()
    if not output.is_table:
        rows = [_document(contexts, name) for name in sorted(contexts.named)]
        output.print({"contexts": rows, "file": str(contexts_path())}, rows="contexts")
        return
    table = Table(box=None, pad_edge=False)
    for title in ("", "context", "broker", "url", "tenant"):
        table.add_column(title, no_wrap=True)
    for name, values in sorted(contexts.named.items()):
        star = "*" if name == contexts.current else ""
        table.add_row(star, name, *(shown(_shown(values).get(each, "")) for each in ("broker", "url", "tenant")))
    print_whole(table)
    if not contexts.named:
        note("There is no context. Add one with `light-scheduler config add`.")


@command.command("show", epilog=examples("config show", "config show staging --json"))
@click.argument("name", required=False, shell_complete=context_names)
@output_option()
def show(name: str | None, output: Output) -> None:
    """Show the context NAME. Default: the one in use. Shows the names of files, not their contents."""
    contexts = _contexts()
    named = name or contexts.current
    if named is None:
        raise ConfigurationError("context", "none is in use. Choose one with `light-scheduler config use NAME`")
    document = _document(contexts, named)
    if not output.is_table:
        output.print(document)
        return
    click.echo(named + (" (in use)" if document["current"] else ""))
    for key, value in document["values"].items():
        click.echo(f"  {key}: {shown(value).plain}")


@command.command("use", epilog=examples("config use staging", "config use --none"))
@click.argument("name", required=False, shell_complete=context_names)
@click.option("--none", "no_context", is_flag=True, help="Work in no context.")
def use(name: str | None, no_context: bool) -> None:
    """Work in the context NAME from now on. For one command, use --context or LIGHT_SCHEDULER_CONTEXT."""
    if (name is None) is not no_context:
        raise click.UsageError("Name the context to use, or give --none.")
    change_contexts(contexts_path(), lambda contexts: contexts.using(name), check_current=False)
    note("No context is in use." if name is None else f"Context {name} is in use.")


_ADD = examples(
    "config add local --broker kafka://127.0.0.1:9092",
    "config add staging --broker kafka://kafka-1:9092 --url https://workers:6066 --tenant shop --token-file ~/.token",
)


@command.command("add", epilog=_ADD)
@click.argument("name")
@_values
def add(name: str, **given: str | None) -> None:
    """Add the context NAME. The first one is in use at once."""

    def added(contexts: Contexts) -> Contexts:
        if name in contexts.named:
            raise click.UsageError(f"Context {name} exists. Change it with `light-scheduler config set {name}`.")
        having = contexts.having(name, _given(given))
        return having if contexts.named else having.using(name)

    change_contexts(contexts_path(), added)


@command.command("set", epilog=examples("config set staging --tenant billing", "config set staging --unset url"))
@click.argument("name", shell_complete=context_names)
@_values
@click.option(
    "--unset",
    multiple=True,
    type=click.Choice([*OF_COMMANDS, *CONTEXT_SETTINGS]),
    metavar="SETTING",
    help="Remove this setting from the context. Can be repeated.",
)
def set_values(name: str, unset: tuple[str, ...], **given: str | None) -> None:
    """Change the context NAME. Settings that you do not name stay as they are."""

    def changed(contexts: Contexts) -> Contexts:
        values = {key: value for key, value in contexts.get(name).items() if key not in unset}
        return contexts.having(name, {**values, **_given(given)})

    change_contexts(contexts_path(), changed)


@command.command("remove", epilog=examples("config remove staging"))
@click.argument("name", shell_complete=context_names)
def remove(name: str) -> None:
    """Remove the context NAME. Files that it names stay."""
    change_contexts(contexts_path(), lambda contexts: contexts.without(name))


def _contexts() -> Contexts:
    return load_contexts(contexts_path())


def _given(values: Mapping[str, str | None]) -> dict[str, str]:
    given = {name: value for name, value in values.items() if value is not None}
    if "tenant" in given:
        try:
            parse_tenant(given["tenant"])
        except ValueError as error:
            raise click.BadParameter(str(error), param_hint="--tenant") from None
    return given


def _shown(values: Mapping[str, str]) -> dict[str, str]:
    """Return the values, without logins in URLs, which an earlier version accepted."""
    return {name: without_login(value) if name == "url" else value for name, value in values.items()}


def _document(contexts: Contexts, name: str) -> dict[str, Any]:
    return {"name": name, "current": name == contexts.current, "values": _shown(contexts.get(name))}
