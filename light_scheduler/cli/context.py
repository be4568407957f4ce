"""The context that a command works in, and the defaults that it gives to options."""

from __future__ import annotations

import logging
import os
from collections.abc import Mapping
from typing import Any

import click

from light_scheduler.contexts import CONTEXT_SETTINGS, check_for_use, contexts_path, load_contexts
from light_scheduler.errors import ConfigurationError
from light_scheduler.settings import ENVIRONMENT_PREFIX

_CONTEXT = f"{__name__}.context"
_SHOWN = f"{__name__}.shown"
_ADDRESS = ("web_host", "web_port")

log = logging.getLogger(__name__)


def context_of(ctx: click.Context) -> Mapping[str, str]:
    """Return the context that a command works in. Raises ConfigurationError."""
    return _context_of(ctx)[1]


def _context_of(ctx: click.Context) -> tuple[str | None, Mapping[str, str]]:
    """Return the context that a command works in, and its name."""
    named = ctx.meta.get(_CONTEXT) or named_context()
    path = contexts_path()
    contexts = load_contexts(path)
    in_use = named or contexts.current
    if in_use and not ctx.meta.get(_SHOWN):
        ctx.meta[_SHOWN] = True
        log.debug("context %s of %s", in_use, path)
    return in_use, contexts.get(named)


def value_of_context(ctx: click.Context, name: str) -> str | None:
    """Return a setting of the context that a command works in. Raises ConfigurationError, also if the value is
    invalid."""
    in_use, values = _context_of(ctx)
    if name not in values:
        return None
    try:
        check_for_use(name, values[name])
    except ConfigurationError as error:
        remedy = f"Change it with `light-scheduler config set {in_use} --{name} VALUE`"
        raise ConfigurationError(str(contexts_path()), f"{error}. {remedy}") from error
    return values[name]


def of_context(name: str, otherwise: str | None = None) -> str | None:
    """Return the default of an option. Returns None during completion, so that errors of a context appear only when the
    command runs."""
    ctx = click.get_current_context()
    return None if ctx.resilient_parsing else value_of_context(ctx, name) or otherwise


def settings_of_context(ctx: click.Context) -> Mapping[str, str]:
    """Return the settings of the context that a command works in. Raises ConfigurationError."""
    return {name: value for name, value in context_of(ctx).items() if name in CONTEXT_SETTINGS}


def url_of_context(ctx: click.Context, given: Mapping[str, Any]) -> str | None:
    """Return the worker of the context. Options and environment variables that name a worker take precedence."""
    is_given = any(given.get(name) or f"{ENVIRONMENT_PREFIX}{name.upper()}" in os.environ for name in _ADDRESS)
    return None if is_given else value_of_context(ctx, "url")


def context_names(_ctx: click.Context, _param: click.Parameter, incomplete: str) -> list[str]:
    """Return names of contexts that begin with the typed text, for shell completion."""
    try:
        return sorted(name for name in load_contexts(contexts_path()).named if name.startswith(incomplete))
    except ConfigurationError:
        return []


def named_context() -> str | None:
    """Return the context that the environment names, or None."""
    return os.environ.get(f"{ENVIRONMENT_PREFIX}CONTEXT") or None


def chosen_context() -> str | None:
    """Return the context chosen with `config use`; None if there is none, or the contexts cannot be read."""
    try:
        return load_contexts(contexts_path(), check_current=False).current
    except ConfigurationError:
        return None


context_option = click.option(
    "--context",
    is_eager=True,  # other options get their defaults from it
    expose_value=False,
    callback=lambda ctx, _, name: ctx.meta.update({_CONTEXT: name}),
    metavar="NAME",
    shell_complete=context_names,
    help="Context to work in: see `light-scheduler config`. [default: the one in use; env: LIGHT_SCHEDULER_CONTEXT]",
)
