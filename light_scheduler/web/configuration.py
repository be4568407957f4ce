"""The HTTP handlers of a worker's settings, and of the results of `doctor` where it runs."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable, Mapping, Sequence
from dataclasses import Field, fields
from itertools import takewhile
from typing import Any

import msgspec
from aiohttp import web

from light_scheduler.connection.secret import HIDDEN
from light_scheduler.doctor.check import Check
from light_scheduler.settings import ENVIRONMENT_PREFIX, Settings, is_secret
from light_scheduler.settings.texts import setting_text

from .configuration_document import CheckView, ConfigurationDocument, DoctorDocument, SettingView
from .worker import Worker
from .worker_documents import InfoDocument

FRESH_S = 10.0
"""How long the results of the checks are reused. A run sends the broker about a dozen requests; only one runs at a
time."""


class ConfigurationHandlers:
    """One method per operation."""

    def __init__(self, worker: Worker, info: Callable[[], InfoDocument]) -> None:
        self._worker = worker
        self._info = info
        self._run: asyncio.Task[bytes] | None = None
        self._begun = 0.0
        self._closing = threading.Event()

    async def configuration(self, request: web.Request) -> web.Response:
        del request
        return _json(msgspec.json.encode(settings_shown(self._worker.settings, self._worker.peers.own_url)))

    async def doctor(self, request: web.Request) -> web.Response:
        del request
        now = asyncio.get_running_loop().time()
        if self._run is None or (self._run.done() and (now >= self._begun + FRESH_S or self._run.exception())):
            self._begun = now
            self._run = asyncio.create_task(self._examined())
        return _json(await asyncio.shield(self._run))

    async def close(self) -> None:
        """Stop the checks. A check that has begun ends by itself within its time-out; no other begins."""
        self._closing.set()
        if self._run is not None:
            self._run.cancel()
            await asyncio.gather(self._run, return_exceptions=True)

    async def _examined(self) -> bytes:
        checks = await asyncio.to_thread(self._checks, msgspec.to_builtins(self._info()))
        return msgspec.json.encode(checks_shown(checks, self._worker.peers.own_url, self._worker.clock.now()))

    def _checks(self, info: Mapping[str, Any]) -> list[Check]:
        """Run the checks. Cancelling a task does not end its thread, and Python waits for threads when it exits."""
        return list(takewhile(lambda _: not self._closing.is_set(), self._worker.examine(info)))


def settings_shown(settings: Settings, url: str) -> ConfigurationDocument:
    """Return all settings of the worker at an address, by name."""
    views = [
        SettingView(
            name=setting.name,
            value=_value(setting, getattr(settings, setting.name)),
            origin=settings.origin(setting.name),
            variable=ENVIRONMENT_PREFIX + setting.name.upper(),
            help=setting.metadata["help"],
        )
        for setting in fields(settings)
    ]
    return ConfigurationDocument(url=url, settings=sorted(views, key=lambda each: each.name))


def checks_shown(checks: Sequence[Check], url: str, at: int) -> DoctorDocument:
    """Return the results of the checks of the worker at `url`, completed at an instant (UTC epoch ms)."""
    return DoctorDocument(
        url=url,
        at=at,
        ok=all(check.status != "fail" for check in checks),
        checks=[
            CheckView(name=check.name, status=check.status, detail=check.detail, fix=check.fix) for check in checks
        ],
    )


def _value(setting: Field[Any], value: Any) -> str | None:
    if value is not None and is_secret(setting):
        return HIDDEN
    return setting_text(setting, value) or None


def _json(body: bytes) -> web.Response:
    return web.Response(body=body, content_type="application/json")
