"""Options shared by several commands, generated from the declarations of the settings."""

from __future__ import annotations

import functools
import re
from collections.abc import Callable
from dataclasses import Field, fields
from pathlib import Path
from typing import Any, TypeVar

import click

from light_scheduler.contexts import NONE
from light_scheduler.model import DEFAULT_TENANT
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

from .completed_values import tenants
from .context import context_option, of_context, settings_of_context, url_of_context

F = TypeVar("F", bound=Callable[..., Any])

_WORD = re.compile(
    r"DEBUG|INFO|WARNING|ERROR|(SASL_)?(PLAINTEXT|SSL)|PLAIN|SCRAM-SHA-\d+|OAUTHBEARER|[a-z]{2,}(-[a-z]+)*"
)
_OF_WORKERS = ("token_file", *HTTP_SECURITY_SETTINGS)
_DECLARED = {setting.name: setting for setting in fields(Settings)}


def settings_options(*names: str, in_context: bool = True) -> Callable[[F], F]:
    """Add `--config`, `--context` and an option for each named setting. The command receives `settings: Settings`.

    Use `in_context=False` for commands that run a worker: a context says what a person works with, not how a node runs.
    With `broker`, the options for logging in to it are added too; with `web_host`, those for the token and the trusted
    authority. `--help` hides these unless they are named. Secrets have no options.
    """
    hidden = [name for name in SECURITY_SETTINGS if "broker" in names and name not in names]
    hidden += [name for name in _OF_WORKERS if "web_host" in names and name not in names]
    offered = [name for name in (*names, *hidden) if not is_secret(_DECLARED[name])]

    def decorate(function: F) -> F:
        @functools.wraps(function)
        def with_settings(*args: Any, config: Path | None, **kwargs: Any) -> Any:
            given = {name: kwargs.pop(name) for name in offered}
            ctx = click.get_current_context()
            context = settings_of_context(ctx) if in_context else NONE
            if "url" in kwargs and kwargs["url"] is None:
                kwargs["url"] = url_of_context(ctx, given)
            return function(*args, settings=load_settings(given, file=config, context=context), **kwargs)

        command: Any = with_settings
        for name in reversed(offered):
            help = f"{_DECLARED[name].metadata['help']} {_origins(_DECLARED[name])}"
            command = declared_option(name, help, hidden=name in hidden)(command)
        if in_context:
            command = context_option(command)
        return click.option(  # type: ignore[no-any-return]
            "--config",
            type=click.Path(exists=True, dir_okay=False, path_type=Path),
            help="Settings file. Default: light-scheduler.toml, if it exists.",
        )(command)

    return decorate


url_option = click.option(
    "--url",
    envvar=f"{ENVIRONMENT_PREFIX}URL",
    help="Address of any worker. Default: http://WEB_HOST:WEB_PORT, with https if web_ssl_certificate is set. With "
    f"https, --web-ssl-ca names the authority to trust. [env: {ENVIRONMENT_PREFIX}URL]",
)
tenant_option = click.option(
    "--tenant",
    default=lambda: of_context("tenant", DEFAULT_TENANT),
    envvar=f"{ENVIRONMENT_PREFIX}TENANT",
    shell_complete=tenants,
    help=f"Tenant of the schedules. [default: {DEFAULT_TENANT}; env: {ENVIRONMENT_PREFIX}TENANT]",
)


def declared_option(name: str, help: str, *, hidden: bool = False) -> Callable[[F], F]:
    """Add the option of a setting, using its declaration."""
    syntax = _DECLARED[name].metadata["syntax"]
    return click.option(option_name(name), name, type=_type(syntax), metavar=syntax, hidden=hidden, help=help)


def _type(syntax: str) -> click.ParamType | None:
    """Return the choices if a syntax consists only of choices, so that shells can complete them; otherwise None."""
    words = syntax.split("|")
    return click.Choice(words) if len(words) > 1 and all(map(_WORD.fullmatch, words)) else None


def _origins(setting: Field[Any]) -> str:
    """Describe the value without the option: its default and its environment variable."""
    default = default_text(setting)
    hints = [] if default is None else [f"default: {default}"]
    return f"[{'; '.join([*hints, f'env: {ENVIRONMENT_PREFIX}{setting.name.upper()}'])}]"
