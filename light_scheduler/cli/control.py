"""The commands `cancel`, `pause`, `resume` and `trigger`, which differ only in their names."""

from __future__ import annotations

import click

from light_scheduler.client import ManyOptions
from light_scheduler.client.commands import CommandToSend, control_command, control_many_command
from light_scheduler.model import ControlName, ReplyTo

from .answers import Sender, sending_options
from .examples import examples
from .header_options import header_options
from .selection import selection

_EXIT_CODE = (
    "Exit code 1: no schedule ID is pending, the scheduler refused the command or did not answer in time, or the "
    "broker cannot be reached. A selection succeeds even if nothing matches."
)

key_option = click.option(
    "--key", metavar="KEY", help="Entity key of the schedule. Default: ask a worker where the schedule is."
)


def control(name: ControlName, summary: str) -> click.Command:
    """Return the command with this name. `summary` says what it does to the schedule ID, or to all selected ones."""

    @click.command(
        name,
        help=f"{summary} Print the scheduler's answer.\n\n{_EXIT_CODE}",
        epilog=examples(f"{name} order-1", f"{name} --prefix order- --label team=billing", f"{name} --all --yes"),
    )
    @selection(name)
    @key_option
    @header_options("expected-version")
    @sending_options
    def command(
        sender: Sender, id: str | None, selected: ManyOptions, key: str | None, expected_version: int | None
    ) -> None:
        def make(reply_to: ReplyTo | None) -> CommandToSend:
            if id is None:
                return control_many_command(name, sender.tenant, selected, reply_to=reply_to)
            return control_command(
                name, sender.tenant, id, key=key, expected_version=expected_version, reply_to=reply_to
            )

        sender.send(make, find=id if key is None else None, to_all=id is None)

    return command
