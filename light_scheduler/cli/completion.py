"""`light-scheduler completion`: a script for shells to complete commands, options, ids and tenants."""

from __future__ import annotations

import click
from click.shell_completion import get_completion_class

from .examples import examples

PROGRAM = "light-scheduler"
VARIABLE = "_LIGHT_SCHEDULER_COMPLETE"


@click.command("completion", epilog=examples("completion bash", "completion zsh", "completion fish"))
@click.argument("shell", type=click.Choice(("bash", "zsh", "fish")))
@click.pass_context
def command(ctx: click.Context, shell: str) -> None:
    """Print a script that makes SHELL complete commands, options, ids of schedules and tenants.

    Ids and tenants come from a worker. If none answers within a second, the shell suggests none. Ids with spaces,
    quotes or other characters that a shell interprets are never suggested.
    """
    completes = get_completion_class(shell)
    assert completes is not None
    script = completes(ctx.find_root().command, {}, PROGRAM, VARIABLE)
    click.echo(script.source_template % script.source_vars())
