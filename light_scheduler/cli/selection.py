"""Selects one schedule by its id, or several by prefix and labels, for bulk commands."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any, TypeVar

import click

from light_scheduler.client import ManyOptions
from light_scheduler.wire.build import ANY
from light_scheduler.wire.fields import parse_labels

from .completed_values import schedule_ids

F = TypeVar("F", bound=Callable[..., Any])

_OF_ONE = {"key": "--key", "expected_version": "--expected-version"}


def selection(verb: str) -> Callable[[F], F]:
    """Add the argument ID, `--prefix`, `--label`, `--all` and `--yes`. `verb` is what the command does to schedules.

    The command receives `id: str | None` and `selected: ManyOptions`, exactly one of which is given. It needs an option
    `--tenant`.
    """

    def decorate(function: F) -> F:
        @functools.wraps(function)
        def with_selection(
            id: str | None,
            id_prefix: str | None,
            label: str,
            everything: bool,
            yes: bool,
            **kwargs: Any,
        ) -> Any:
            selected = ManyOptions()
            if id_prefix:
                selected["id_prefix"] = id_prefix
            if label:
                selected["labels"] = label
            if everything:
                selected["everything"] = True
            _check(id, selected, [option for name, option in _OF_ONE.items() if kwargs.get(name) is not None])
            if everything and not yes:
                tenant = click.get_current_context().params["tenant"]
                click.confirm(f"{verb.capitalize()} all schedules of tenant {tenant}?", abort=True, err=True)
            return function(id=id, selected=selected, **kwargs)

        command: Any = with_selection
        for option in (
            click.option("--yes", is_flag=True, help="Do not ask for confirmation of --all."),
            click.option("--all", "everything", is_flag=True, help="Select all schedules of the tenant."),
            click.option(
                "--label",
                multiple=True,
                callback=_labels,
                metavar="NAME=VALUE",
                help="Select all schedules with this label. Repeat it to require several labels.",
            ),
            click.option(
                "--prefix",
                "id_prefix",
                metavar="PREFIX",
                help="Select all schedules whose id begins with PREFIX. Leave out the *: it would be part of PREFIX.",
            ),
            click.argument("id", required=False, shell_complete=schedule_ids),
        ):
            command = option(command)
        return command  # type: ignore[no-any-return]

    return decorate


def _labels(_ctx: click.Context, _param: click.Parameter, given: tuple[str, ...]) -> str:
    labels = ",".join(given)
    try:
        parse_labels(labels)
    except ValueError as error:
        raise click.BadParameter(str(error)) from None
    return labels


def _check(id: str | None, selected: ManyOptions, of_one: list[str]) -> None:
    if id is None and not selected:
        raise click.UsageError("Missing argument 'ID'. To select several schedules, use --prefix, --label or --all.")
    if id is not None and selected:
        raise click.UsageError(
            "ID and --prefix, --label or --all are given together: name one schedule, or select several."
        )
    if id is not None and id.endswith(ANY):
        raise click.UsageError(f"ID must not end in {ANY}. To select several schedules, use --prefix or --all.")
    if selected and of_one:
        raise click.UsageError(f"{of_one[0]} cannot be used with --prefix, --label or --all: it is for one schedule.")
    if "everything" in selected and len(selected) > 1:
        raise click.UsageError("--all selects all schedules of the tenant: leave out --prefix and --label.")
