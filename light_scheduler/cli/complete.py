"""`light-scheduler complete`: report a firing as completed or failed."""

from __future__ import annotations

import click

from light_scheduler.client.commands import complete_command

from .answers import Sender, sending_options
from .control import key_option
from .examples import examples

attempt_option = click.option(
    "--attempt",
    type=click.IntRange(min=1),
    default=1,
    show_default=True,
    metavar="N",
    help="Attempt that the consumer received.",
)


@click.command(
    "complete", epilog=examples("complete poll@1893456000000", "complete poll@1893456000000 --attempt 2 --failure")
)
@click.argument("firing_id")
@attempt_option
@click.option(
    "--failure",
    is_flag=True,
    help="Report a failure: the firing is delivered again if it has attempts left. Default: report success.",
)
@key_option
@sending_options
def command(sender: Sender, firing_id: str, attempt: int, failure: bool, key: str | None) -> None:
    """Report the firing FIRING_ID as completed or failed. Print the scheduler's answer.

    Take FIRING_ID and --attempt from the headers schedule-firing-id and schedule-attempt of the message.

    Exit code 1: the firing does not wait for a completion, a later attempt has been delivered, the scheduler did not
    answer in time, or the broker cannot be reached.
    """
    sender.send(
        lambda reply_to: complete_command(
            sender.tenant, firing_id, attempt, succeeded=not failure, key=key, reply_to=reply_to
        ),
        find=firing_id.rpartition("@")[0] if key is None else None,
    )
