"""Options that several commands share, made from the settings' own declaration."""

from __future__ import annotations

import functools
import re
from collections.abc import Callable
from dataclasses import Field, fields
from pathlib import Path
from typing import Any, TypeVar

import click

from light_scheduler.settings import (
    ENVIRONMENT_PREFIX,
    HTTP_SECURITY_SETTINGS,
    SECURITY_SETTINGS,
    Settings,
    default_text,
    is_secret,
    load_settings,
    option_name,
)

F = TypeVar("F", bound=Callable[..., Any])

_WORD = re.compile(
    r"DEBUG|INFO|WARNING|ERROR|(SASL_)?(PLAINTEXT|SSL)|PLAIN|SCRAM-SHA-\d+|OAUTHBEARER|[a-z]{2,}(-[a-z]+)*"
)
_OF_WORKERS = ("token_file", *HTTP_SECURITY_SETTINGS)
_DECLARED = {setting.name: setting for setting in fields(Settings)}


def settings_options(*names: str) -> Callable[[F], F]:
    """Add `--config` and an option for each named setting; the command receives `settings: Settings`.

    Whoever is given `broker` can be told how to log in to it, too, and whoever is given `web_host` which token to send
    and whom to trust: `--help` does not list that unless it is named.
    Secrets have no options.
    """
    hidden = [name for name in SECURITY_SETTINGS if "broker" in names and name not in names]
    hidden += [name for name in _OF_WORKERS if "web_host" in names and name not in names]
    offered = [name for name in (*names, *hidden) if not is_secret(_DECLARED[name])]

    def decorate(function: F) -> F:
        @functools.wraps(function)
        def with_settings(*args: Any, config: Path | None, **kwargs: Any) -> Any:
            given = {name: kwargs.pop(name) for name in offered}
            return function(*args, settings=load_settings(given, file=config), **kwargs)

        command: Any = with_settings
        for name in reversed(offered):
            declared = _DECLARED[name].metadata
            command = click.option(
                option_name(name),
                name,
                type=_type(declared["syntax"]),
                metavar=declared["syntax"],
                hidden=name in hidden,
                help=f"{declared['help']} {_origins(_DECLARED[name])}",
            )(command)
        return click.option(  # type: ignore[no-any-return]
            "--config",
            type=click.Path(exists=True, dir_okay=False, path_type=Path),
            help="Settings file. Default: light-scheduler.toml, if it exists.",
        )(command)

    return decorate


def json_option(function: F) -> F:
    """Add `--json`; the command receives `as_json: bool`."""
    return click.option("--json", "as_json", is_flag=True, help="Print JSON.")(function)


def _type(syntax: str) -> click.ParamType | None:
    """Return the choices that a syntax consists of, which shells can complete; None where it is not just that."""
    words = syntax.split("|")
    return click.Choice(words) if len(words) > 1 and all(map(_WORD.fullmatch, words)) else None


def _origins(setting: Field[Any]) -> str:
    """Say what holds without the option: its default and its variable."""
    default = default_text(setting)
    told = [] if default is None else [f"default: {default}"]
    return f"[{'; '.join([*told, f'env: {ENVIRONMENT_PREFIX}{setting.name.upper()}'])}]"
