"""The process that decodes payloads for a worker. Started by `decoder`.

    python -m light_scheduler.payloads.process

See `job` for the messages. It ends when standard input ends, or when a job takes too long.
"""

from __future__ import annotations

import os
import resource
import signal
import sys
from importlib import import_module
from pathlib import Path
from typing import BinaryIO

import msgspec

from .decode import Hook, decoded
from .job import LENGTH, TIME_LIMIT_S, Job, Start, Started
from .schema_folder import SchemaFolder

MEMORY_BYTES = 2 << 30
"""Limit of its address space. Decoding that needs more fails."""

NICENESS = 10
"""The lanes have priority."""

HOOK_ADVICE = ". Write package.module:function, and install the package where the worker runs"

_GRACE_S = 1.0
"""The worker normally ends the process first."""


class _UnusableError(Exception):
    """The hook cannot be used; the text says why."""


def main() -> int:
    """Decode messages from standard input until it ends."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C reaches every process of a terminal, but the worker decides
    os.nice(NICENESS)
    jobs, answers = _own(0, os.O_RDONLY), _own(1, os.O_WRONLY)
    start = msgspec.msgpack.decode(_received(jobs), type=Start)
    try:
        hook = None if start.hook is None else _loaded(start)
    except _UnusableError as error:
        _send(answers, Started(str(error)))
        return 1
    schemas = None if start.schemas is None else SchemaFolder(Path(start.schemas))
    started = Started() if schemas is None else _read(schemas)
    _, hard = resource.getrlimit(resource.RLIMIT_AS)
    resource.setrlimit(resource.RLIMIT_AS, (MEMORY_BYTES, hard))
    _send(answers, started)
    while body := _received(jobs):
        job = msgspec.msgpack.decode(body, type=Job)
        signal.setitimer(signal.ITIMER_REAL, TIME_LIMIT_S + _GRACE_S)  # its signal ends the process, whatever runs
        answer = decoded(job, hook, schemas)
        signal.setitimer(signal.ITIMER_REAL, 0)
        _send(answers, answer)
    return 0


def _own(descriptor: int, flags: int) -> BinaryIO:
    """Return a standard stream for this module alone. A hook gets an empty input, and its prints go to the log."""
    own = os.fdopen(os.dup(descriptor), "rb" if flags == os.O_RDONLY else "wb")
    if flags == os.O_RDONLY:
        nothing = os.open(os.devnull, flags)
        os.dup2(nothing, descriptor)
        os.close(nothing)
    else:
        os.dup2(2, descriptor)
    return own


def _received(stream: BinaryIO) -> bytes:
    """Return the next message; empty at the end."""
    head = stream.read(LENGTH.size)
    return stream.read(LENGTH.unpack(head)[0]) if len(head) == LENGTH.size else b""


def _send(stream: BinaryIO, answer: msgspec.Struct | None) -> None:
    body = msgspec.msgpack.encode(answer)
    stream.write(LENGTH.pack(len(body)) + body)
    stream.flush()


def _loaded(start: Start) -> Hook:
    assert start.hook is not None
    sys.path[:] = start.path
    module, _, name = start.hook.partition(":")
    try:
        hook = import_module(module)
        for part in name.split("."):
            hook = getattr(hook, part)
    except Exception as error:  # a module can fail in any way
        raise _UnusableError(
            f"{start.hook} cannot be imported: {type(error).__name__}: {error}{HOOK_ADVICE}"
        ) from error
    if not callable(hook):
        raise _UnusableError(f"{start.hook} is of the type {type(hook).__name__}, which cannot be called{HOOK_ADVICE}")
    return hook


def _read(schemas: SchemaFolder) -> Started:
    try:
        schemas.read()
    except (ValueError, LookupError, OSError) as error:
        return Started(no_schemas=str(error))
    return Started(broken=schemas.broken)


if __name__ == "__main__":
    sys.exit(main())
