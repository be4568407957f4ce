"""How the command line names what a field of a command or of a question is given by."""

from __future__ import annotations

import click


def spelled(field: str) -> str:
    """Return the option of a field, `--ack-timeout`, or the argument of the command that runs, `FIRING_ID`."""
    name = field.replace("-", "_")
    for parameter in click.get_current_context().command.params:
        if isinstance(parameter, click.Argument) and parameter.name in (name, f"{name}s"):
            return parameter.human_readable_name.removesuffix("...")
    return f"--{name.replace('_', '-')}"
