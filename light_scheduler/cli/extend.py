"""`light-scheduler extend`: report that a firing is still being processed."""

from __future__ import annotations

import click

from light_scheduler.client.commands import extend_command

from .answers import Sender, sending_options
from .complete import attempt_option
from .control import key_option
from .durations import DurationText
from .examples import examples


@click.command("extend", epilog=examples("extend poll@1893456000000", "extend poll@1893456000000 --ack-timeout 10m"))
@click.argument("firing_id")
@attempt_option
@click.option(
    "--ack-timeout",
    type=DurationText(),
    metavar="DURATION",
    help="New time-out of the firing, counted from now. Default: the ack-timeout of the schedule.",
)
@key_option
@sending_options
def command(sender: Sender, firing_id: str, attempt: int, ack_timeout: str | None, key: str | None) -> None:
    """Report that the firing FIRING_ID is still being processed. Print the scheduler's answer.

    The firing is not delivered again before the time-out is over. Take FIRING_ID and --attempt from the headers
    schedule-firing-id and schedule-attempt of the message.

    Exit code 1: the firing does not wait for a completion, the time-out was over, a later attempt has been delivered,
    the scheduler did not answer in time, or the broker cannot be reached.
    """
    sender.send(
        lambda reply_to: extend_command(
            sender.tenant, firing_id, attempt, ack_timeout=ack_timeout, key=key, reply_to=reply_to
        ),
        find=firing_id.rpartition("@")[0] if key is None else None,
    )
