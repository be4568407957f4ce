"""`light-scheduler complete`: say how the consumer of a firing fared."""

from __future__ import annotations

import click

from light_scheduler.client.commands import complete_command

from .answers import Sender, sending_options
from .control import key_option


@click.command("complete")
@click.argument("firing_id")
@click.option(
    "--attempt", type=click.IntRange(min=1), default=1, show_default=True, metavar="N", help="Which attempt of it."
)
@click.option("--failure", is_flag=True, help="It failed: it is delivered again, if it may be. Default: success.")
@key_option
@sending_options
def command(sender: Sender, firing_id: str, attempt: int, failure: bool, key: str | None) -> None:
    """Say that the firing FIRING_ID has been dealt with, and print the scheduler's answer.

    FIRING_ID and --attempt are what the message has in its headers schedule-firing-id and schedule-attempt.

    Exit code 1: nothing waits for this completion, a later attempt has been delivered, the scheduler did not answer in
    time, or the broker cannot be reached.
    """
    sender.send(
        lambda reply_to: complete_command(
            sender.tenant, firing_id, attempt, succeeded=not failure, key=key, reply_to=reply_to
        )
    )
