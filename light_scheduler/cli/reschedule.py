"""`light-scheduler reschedule`: change when one schedule fires, or several."""

from __future__ import annotations

from typing import Any

import click

from light_scheduler.client import ManyOptions, TimeRule
from light_scheduler.client.commands import CommandToSend, reschedule_command, reschedule_many_command
from light_scheduler.model import ReplyTo
from light_scheduler.wire.build import TIME_RULE

from .answers import Sender, sending_options
from .control import key_option
from .examples import examples
from .header_options import header_options
from .selection import selection


@click.command(
    "reschedule",
    epilog=examples("reschedule order-1 --after 1h", "reschedule --prefix order- --at 2030-01-01T09:00:00Z"),
)
@selection("reschedule")
@key_option
@header_options(*TIME_RULE)
@header_options("expected-version")
@sending_options
def command(
    sender: Sender,
    id: str | None,
    selected: ManyOptions,
    key: str | None,
    expected_version: int | None,
    **rule: Any,
) -> None:
    """Change when the schedule ID fires, or when all selected schedules fire. Print the scheduler's answer.

    One of --at, --after, --every, --cron and --backoff is required. Bounds, jitter, window and misfire policy that you
    leave out go back to their defaults. Nothing else about the schedule changes.

    Exit code 1: no schedule ID is pending, the scheduler refused the command or did not answer in time, or the broker
    cannot be reached. A selection succeeds even if nothing matches.
    """
    whole = TimeRule(**rule)  # type: ignore[typeddict-item]  # text stands for every type of argument

    def make(reply_to: ReplyTo | None) -> CommandToSend:
        if id is None:
            return reschedule_many_command(sender.tenant, selected, whole, reply_to=reply_to)
        return reschedule_command(
            sender.tenant, id, whole, key=key, expected_version=expected_version, reply_to=reply_to
        )

    sender.send(make, find=id if key is None else None, to_all=id is None)
