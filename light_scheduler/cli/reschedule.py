"""`light-scheduler reschedule`: give one schedule another time rule."""

from __future__ import annotations

from typing import Any

import click

from light_scheduler.client import TimeRule
from light_scheduler.client.commands import reschedule_command

from .answers import Sender, sending_options
from .control import key_option
from .header_options import TIME_RULE, header_options


@click.command("reschedule")
@click.argument("id")
@key_option
@header_options(*TIME_RULE)
@header_options("expected-version")
@sending_options
def command(sender: Sender, id: str, key: str | None, expected_version: int | None, **rule: Any) -> None:
    """Give the schedule ID another time rule and print the scheduler's answer. Everything else of it stays.

    One of --at, --after, --every, --cron and --backoff is required.

    Exit code 1: there is no such schedule, the scheduler refused or did not answer in time, or the broker cannot be
    reached.
    """
    whole = TimeRule(**rule)  # type: ignore[typeddict-item]  # text stands for every type of argument
    sender.send(
        lambda reply_to: reschedule_command(
            sender.tenant, id, whole, key=key, expected_version=expected_version, reply_to=reply_to
        )
    )
