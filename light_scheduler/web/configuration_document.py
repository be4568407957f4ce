"""The JSON documents of a worker's settings, and of the results of `doctor`."""

from __future__ import annotations

from typing import Annotated

import msgspec
from msgspec import Meta

from light_scheduler.doctor.check import Status
from light_scheduler.settings import Origin


class SettingView(msgspec.Struct, frozen=True, kw_only=True):
    """A setting and its value in a worker."""

    name: str
    value: Annotated[
        str | None, Meta(description="As an option would give it; null: none. Of a secret only whether it is set.")
    ]
    origin: Annotated[
        Origin,
        Meta(
            description="Where the value comes from. node: `processes` gave it to this process of a node; context: "
            "that of the command line which started it."
        ),
    ]
    variable: Annotated[str, Meta(description="The variable of the environment that sets it.")]
    help: str


class ConfigurationDocument(msgspec.Struct, frozen=True, kw_only=True):
    """The settings of the worker that answers."""

    url: Annotated[str, Meta(description="Address of this worker.")]
    settings: Annotated[list[SettingView], Meta(description="All of them, by name.")]


class CheckView(msgspec.Struct, frozen=True, kw_only=True):
    """The result of one check."""

    name: str
    status: Status
    detail: str
    fix: Annotated[str | None, Meta(description="What to do; null: nothing.")]


class DoctorDocument(msgspec.Struct, frozen=True, kw_only=True):
    """The results of `light-scheduler doctor` where the answering worker runs."""

    url: Annotated[str, Meta(description="Address of this worker.")]
    at: Annotated[int, Meta(description="When the checks ended, UTC epoch ms.")]
    ok: Annotated[bool, Meta(description="False: a check failed.")]
    checks: list[CheckView]
