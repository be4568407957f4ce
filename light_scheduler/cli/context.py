"""The context that a command works in, and the defaults that options have from it."""

from __future__ import annotations

import logging
import os
from collections.abc import Mapping

import click

from light_scheduler.contexts import contexts_path, load_contexts
from light_scheduler.settings import ENVIRONMENT_PREFIX

from .suggestions import context_names

_CONTEXT = f"{__name__}.context"
_TOLD = f"{__name__}.told"

log = logging.getLogger(__name__)


def context_of(ctx: click.Context) -> Mapping[str, str]:
    """Return the context that a command works in. Raises ConfigurationError."""
    named = ctx.meta.get(_CONTEXT) or os.environ.get(f"{ENVIRONMENT_PREFIX}CONTEXT")
    path = contexts_path()
    contexts = load_contexts(path)
    in_use = named or contexts.current
    if in_use and not ctx.meta.get(_TOLD):
        ctx.meta[_TOLD] = True
        log.debug("context %s of %s", in_use, path)
    return contexts.get(named or None)


def of_context(name: str, otherwise: str | None = None) -> str | None:
    """Return the default of an option; None while its line is being typed: what is wrong with a context waits."""
    ctx = click.get_current_context()
    return None if ctx.resilient_parsing else context_of(ctx).get(name, otherwise)


context_option = click.option(
    "--context",
    is_eager=True,  # other options have their defaults from it
    expose_value=False,
    callback=lambda ctx, _, name: ctx.meta.update({_CONTEXT: name}),
    metavar="NAME",
    shell_complete=context_names,
    help="Context to work in: see `light-scheduler config`. [default: the one in use; env: LIGHT_SCHEDULER_CONTEXT]",
)
