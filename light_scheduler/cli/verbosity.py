"""`-q` and `-v`: what goes to standard error besides errors.

Quiet: nothing. Default: notes, warnings and progress. Verbose: also each request and its address, which modules log as
DEBUG.
"""

from __future__ import annotations

import logging
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, TypeVar

import click

if TYPE_CHECKING:
    from rich.console import Console
    from rich.status import Status

F = TypeVar("F", bound=Callable[..., Any])

_CHOSEN = f"{__name__}.chosen"
_LOGGER = "light_scheduler"


def verbosity_options(*, hidden: bool = False) -> list[click.Option]:
    """Return the options. The program has them, and so does each command, hidden from its help."""
    return [
        _flag("-q", "--quiet", hidden=hidden, help="Print only data and errors: no notes, warnings or progress."),
        _flag("-v", "--verbose", hidden=hidden, help="Print each request and its address on standard error."),
    ]


def note(text: str) -> None:
    """Print a note on standard error, unless quiet."""
    if not is_quiet():
        click.echo(text, err=True)


def warn(text: str) -> None:
    """Warn on standard error, unless quiet."""
    note(f"warning: {text}")


def error_console() -> Console:
    """Return a console for progress, which prints nothing if quiet."""
    from rich.console import Console

    return Console(stderr=True, quiet=is_quiet())


def status(text: str) -> Status:
    """Return a spinner with a text, as a context manager."""
    return error_console().status(text)


def is_quiet() -> bool:
    """Whether the command line asks for data and errors only."""
    ctx = click.get_current_context(silent=True)
    return ctx is not None and ctx.meta.get(_CHOSEN) == "quiet"


def _flag(short: str, name: str, *, hidden: bool, help: str) -> click.Option:
    return click.Option(
        [short, name],
        is_flag=True,
        expose_value=False,
        hidden=hidden,
        help=help,
        callback=lambda ctx, option, given: _choose(ctx, option.name) if given else None,
    )


def _choose(ctx: click.Context, chosen: str) -> None:
    before = ctx.meta.get(_CHOSEN)
    if before not in (None, chosen):
        raise click.UsageError("--quiet and --verbose are given together: give one of them")
    ctx.meta[_CHOSEN] = chosen
    if chosen == "verbose" and before is None and not ctx.resilient_parsing:
        _log_to_standard_error(ctx)


def _log_to_standard_error(ctx: click.Context) -> None:
    """Print the modules' logs while the command runs."""
    logger, handler = logging.getLogger(_LOGGER), logging.StreamHandler()
    handler.setFormatter(logging.Formatter("%(message)s"))
    level, propagates = logger.level, logger.propagate

    def restore() -> None:
        logger.removeHandler(handler)
        logger.setLevel(level)
        logger.propagate = propagates

    logger.addHandler(handler)
    logger.setLevel(logging.DEBUG)
    logger.propagate = False
    ctx.find_root().call_on_close(restore)
