"""The job of a worker process: a JSON line on its standard input, so that arguments and environment contain no
secrets."""

from __future__ import annotations

from typing import Any

import msgspec

from light_scheduler.connection import Secret
from light_scheduler.processes import Process
from light_scheduler.settings import Origin, Settings

WRONG_SETTINGS = 2
"""Exit code of a process with wrong settings, as of every command."""

CANNOT_RUN = 78
"""Exit code of a process that would fail again in the same way for another reason (EX_CONFIG of sysexits.h)."""

STOP_TIMEOUT_S = 25.0
"""How long workers may take to finish their transactions and leave their group before they are killed."""


class Job(msgspec.Struct, frozen=True):
    """`sockets` are file descriptors of the node's listening sockets, which the process inherits."""

    settings: Settings
    process: Process
    sockets: list[int]
    origins: dict[str, Origin] = {}
    """Where the values of the settings come from."""


def encoded(job: Job) -> bytes:
    """Return a job as a line of JSON, including the secrets in its settings: only for a pipe."""
    return msgspec.json.encode(job, enc_hook=_text_of) + b"\n"


def decoded(line: bytes) -> Job:
    """Return the job in a line of `encoded`."""
    return msgspec.json.decode(line, type=Job, dec_hook=lambda kind, text: kind(text))


def _text_of(value: Any) -> str:
    return value.reveal() if isinstance(value, Secret) else str(value)
