"""The options and arguments of the command line for the fields of commands and queries."""

from __future__ import annotations

import click


def parameter_name(field: str) -> str:
    """Return the option of a field, such as `--ack-timeout`, or the argument of the running command, such as
    `FIRING_ID`."""
    name = field.replace("-", "_")
    for parameter in click.get_current_context().command.params:
        if isinstance(parameter, click.Argument) and parameter.name in (name, f"{name}s"):
            return parameter.human_readable_name.removesuffix("...")
    return f"--{name.replace('_', '-')}"
