"""Checks a command before it is sent, with the same codec and engine as the worker."""

from __future__ import annotations

from msgspec.structs import replace

from light_scheduler.client.commands import CommandToSend, command_in
from light_scheduler.clock import SystemClock
from light_scheduler.engine.timing import begin
from light_scheduler.model import RescheduleCommand, ScheduleCommand
from light_scheduler.wire import UnsentRecord


def check_command(sent: CommandToSend) -> None:
    """Raise InvalidCommand, naming the header, for a command that every worker would reject.

    Two things are left to the worker: whether the time is in the past, by its clock, and a missing target, by the
    tenant's rules.
    """
    now = SystemClock().now()
    command = command_in(UnsentRecord(sent.key, sent.value, sent.headers, now))
    if isinstance(command, ScheduleCommand | RescheduleCommand):
        begin(replace(command, on_past=None), now)
