"""Decodes payloads in its own process, one after the other, each within `TIME_LIMIT_S`.

If there is a hook or a folder of schemas, the process starts with the worker, which also checks them; otherwise with
the first payload. It is killed if it takes too long, and started again for the next payload.
"""

from __future__ import annotations

import asyncio
import logging
import os
import signal
import sys
from asyncio.subprocess import PIPE, Process
from contextlib import suppress
from pathlib import Path
from typing import Literal

import msgspec

from light_scheduler.errors import ConfigurationError

from .job import LENGTH, MOST_BYTES, TIME_LIMIT_S, Decoded, Job, Start, Started

KILL_S = 1.0
"""How long to wait for a killed process: processes that a hook has forked may hold its pipes."""

START_S = 30.0
"""Time-out for loading a hook's module."""

log = logging.getLogger(__name__)


_decode = msgspec.msgpack.Decoder(Decoded | None).decode


class _EndedError(Exception):
    """The process has ended."""


class Decoder:
    """`hook` is the setting `payload_decoder`, `schemas` the setting `payload_schemas`."""

    def __init__(self, hook: str | None, schemas: Path | None = None) -> None:
        self._hook = hook
        self._schemas = None if schemas is None else str(schemas)
        self._process: Process | None = None
        self._turn = asyncio.Lock()

    async def check(self) -> None:
        """Load the hook and the schemas, if there are any. Raises ConfigurationError if the hook or the folder of
        schemas cannot be used."""
        if self._hook is not None or self._schemas is not None:
            async with self._turn:
                _, started = await self._start()
                if started.no_schemas is not None:
                    await self._kill()
                    raise ConfigurationError("payload_schemas", started.no_schemas)
                _warn(started)

    async def decode(self, job: Job) -> Decoded | None:
        """Return the decoded payload; None if nothing can decode it. Errors are returned as results."""
        by = self._first_of(job)
        if len(job.payload) > MOST_BYTES:
            return Decoded(by=by, error=f"the payload is larger than {MOST_BYTES >> 20} MiB")
        async with self._turn:
            try:
                process = await self._running()
                async with asyncio.timeout(TIME_LIMIT_S):
                    decoded: Decoded | None = _decode(await _exchanged(process, job))
                    return decoded
            except TimeoutError:
                await self._kill()
                log.warning("decoding a payload for %s took longer than %d s", job.topic, TIME_LIMIT_S)
                return Decoded(by=by, error=f"it took longer than {TIME_LIMIT_S:g} s")
            except (_EndedError, OSError, ConfigurationError) as error:
                await self._kill()
                log.warning("cannot decode a payload for %s: %s", job.topic, error)
                return Decoded(by=by, error=f"the decoding process failed: {error}")
            except asyncio.CancelledError:
                await self._kill()
                raise

    async def close(self) -> None:
        """End the process."""
        await self._kill()

    def _first_of(self, job: Job) -> Literal["hook", "avro", "json"]:
        """Return the decoder that is tried first."""
        if self._hook is not None:
            return "hook"
        return "avro" if job.names_schema or (self._schemas is not None and job.is_single_object) else "json"

    async def _running(self) -> Process:
        if self._process is not None and self._process.returncode is None:
            return self._process
        process, started = await self._start()
        _warn(started)
        return process

    async def _start(self) -> tuple[Process, Started]:
        # -P: import no modules from the current folder, only from the worker's own path.
        arguments = ("-P", "-m", f"{__package__}.process")
        self._process = await asyncio.create_subprocess_exec(
            sys.executable, *arguments, stdin=PIPE, stdout=PIPE, start_new_session=True
        )
        name = self._hook or "the decoding process"
        try:
            async with asyncio.timeout(START_S):
                answer = await _exchanged(self._process, Start(self._hook, sys.path, self._schemas))
        except TimeoutError:
            await self._kill()
            raise ConfigurationError("payload_decoder", f"{name} took longer than {START_S:g} s to load") from None
        except (_EndedError, OSError) as error:
            await self._kill()
            raise ConfigurationError("payload_decoder", f"{name} cannot be loaded: {error}") from None
        started = msgspec.msgpack.decode(answer, type=Started)
        if started.error is not None:
            await self._kill()
            raise ConfigurationError("payload_decoder", started.error)
        return self._process, started

    async def _kill(self) -> None:
        process, self._process = self._process, None
        if process is None:
            return
        if process.returncode is None:
            with suppress(ProcessLookupError):  # it has just ended
                os.killpg(process.pid, signal.SIGKILL)  # including processes that a hook has started
        assert process.stdin is not None
        process.stdin.close()
        with suppress(TimeoutError):
            async with asyncio.timeout(KILL_S):
                await process.wait()


def _warn(started: Started) -> None:
    """Log the schemas that cannot be used."""
    for reason in filter(None, (started.no_schemas, *started.broken)):
        log.warning("payload_schemas: %s", reason)


async def _exchanged(process: Process, message: msgspec.Struct) -> bytes:
    """Send a message and return the answer. Raises _EndedError, OSError."""
    assert process.stdin is not None
    assert process.stdout is not None
    body = msgspec.msgpack.encode(message)
    process.stdin.write(LENGTH.pack(len(body)) + body)
    await process.stdin.drain()
    try:
        (length,) = LENGTH.unpack(await process.stdout.readexactly(LENGTH.size))
        return await process.stdout.readexactly(length)
    except asyncio.IncompleteReadError:
        raise _EndedError(f"it ended with code {await process.wait()}") from None
