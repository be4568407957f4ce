"""The query strings of commands."""

from __future__ import annotations

from typing import Annotated

import msgspec
from msgspec import UNSET, Meta, UnsetType

from light_scheduler.durations import parse_typed_duration
from light_scheduler.tables.views import QueryError
from light_scheduler.web.forms.parameters import checked

LONGEST_WAIT_S = 60.0


class SendParameters(msgspec.Struct, frozen=True, kw_only=True):
    """The query string of a command."""

    timeout: Annotated[
        str, Meta(description="How long to wait for the answer of the scheduler: 500ms, 10s, PT10S; at most 60s.")
    ] = "10s"
    wait: Annotated[bool, Meta(description="false: respond with 202 as soon as Kafka has the command.")] = True

    @property
    def timeout_s(self) -> float:
        """The time-out, s. Raises QueryError."""
        seconds = checked("timeout", parse_typed_duration, self.timeout) / 1_000
        if not 0 < seconds <= LONGEST_WAIT_S:
            raise QueryError("timeout", f"{self.timeout!r} must be 1ms to {LONGEST_WAIT_S:g}s")
        return seconds


class DeleteParameters(SendParameters, frozen=True, kw_only=True):
    """The query string of a cancel."""

    key: (
        Annotated[str, Meta(description="Entity key of the schedule. Default: the schedule is found by its id.")]
        | UnsetType
    ) = UNSET
    expected_version: (
        Annotated[str, Meta(description="Cancel the schedule only if it has this version.")] | UnsetType
    ) = UNSET
