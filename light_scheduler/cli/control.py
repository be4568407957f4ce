"""What `cancel`, `pause`, `resume` and `trigger` have in common: all of it but their names."""

from __future__ import annotations

import click

from light_scheduler.client.commands import control_command
from light_scheduler.model import ControlName

from .answers import Sender, sending_options
from .header_options import header_options

_EXIT_CODE = (
    "Exit code 1: there is no such schedule, the scheduler refused or did not answer in time, or the broker cannot be "
    "reached."
)

key_option = click.option("--key", metavar="KEY", help="Entity key that it was scheduled with; default: the id.")


def control(name: ControlName, summary: str) -> click.Command:
    """Return the command of a name; `summary` is what it does to the schedule ID."""

    @click.command(name, help=f"{summary} Prints the scheduler's answer.\n\n{_EXIT_CODE}")
    @click.argument("id")
    @key_option
    @header_options("expected-version")
    @sending_options
    def command(sender: Sender, id: str, key: str | None, expected_version: int | None) -> None:
        sender.send(
            lambda reply_to: control_command(
                name, sender.tenant, id, key=key, expected_version=expected_version, reply_to=reply_to
            )
        )

    return command
