"""The document of one line's answer in a batch."""

from __future__ import annotations

from typing import Annotated

import msgspec
from msgspec import UNSET, Meta, UnsetType

from light_scheduler.client import Receipt
from light_scheduler.model import Result
from light_scheduler.web.forms.problems import Problem

LINES_MEDIA_TYPE = "application/x-ndjson"
"""Media type of a batch and of its answers: one JSON object per line."""


class BatchAnswer(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """The answer to one line, as for its own request: one of `result`, `sent` and `problem`."""

    line: Annotated[int, Meta(description="Number of the line in the body, from 1.")]
    status: Annotated[int, Meta(description="HTTP status that a request with this line alone would have.")]
    result: Annotated[Result, Meta(description="Answer of the scheduler to the command.")] | UnsetType = UNSET
    sent: (
        Annotated[Receipt, Meta(description="Partition and offset of the command, with `wait=false`.")] | UnsetType
    ) = UNSET
    problem: Annotated[Problem, Meta(description="What is wrong with the line.")] | UnsetType = UNSET
