"""Options that several commands share, made from the settings' own declaration."""

from __future__ import annotations

import functools
from collections.abc import Callable
from dataclasses import fields
from pathlib import Path
from typing import Any, TypeVar

import click

from light_scheduler.settings import ENVIRONMENT_PREFIX, Settings, load_settings, option_name

F = TypeVar("F", bound=Callable[..., Any])

_DECLARED = {setting.name: setting for setting in fields(Settings)}


def settings_options(*names: str) -> Callable[[F], F]:
    """Add `--config` and an option for each named setting; the command receives `settings: Settings`."""

    def decorate(function: F) -> F:
        @functools.wraps(function)
        def with_settings(*args: Any, config: Path | None, **kwargs: Any) -> Any:
            given = {name: kwargs.pop(name) for name in names}
            return function(*args, settings=load_settings(given, file=config), **kwargs)

        command: Any = with_settings
        for name in reversed(names):
            declared = _DECLARED[name].metadata
            command = click.option(
                option_name(name),
                name,
                metavar=declared["syntax"],
                help=f"{declared['help']} [env: {ENVIRONMENT_PREFIX}{name.upper()}]",
            )(command)
        return click.option(  # type: ignore[no-any-return]
            "--config",
            type=click.Path(exists=True, dir_okay=False, path_type=Path),
            help="Settings file (default: light-scheduler.toml, if there is one).",
        )(command)

    return decorate


def json_option(function: F) -> F:
    """Add `--json`; the command receives `as_json: bool`."""
    return click.option("--json", "as_json", is_flag=True, help="Print JSON for machines.")(function)
