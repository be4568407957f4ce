"""Reads and changes delay rules over the HTTP API, for `light-scheduler delays`."""

from __future__ import annotations

from http import HTTPStatus
from typing import TypeVar
from urllib.parse import quote

import msgspec

from light_scheduler.delays import DelayView
from light_scheduler.errors import ClientError

from .cluster.worker_http import WorkerHttp
from .delay_documents import DelayBody, DelayList
from .forms.problems import Problem

_PATH = "/api/v1/delays"
_DONE = (HTTPStatus.OK, HTTPStatus.CREATED, HTTPStatus.NO_CONTENT)

T = TypeVar("T")


class DelayClient(WorkerHttp):
    """Raises ClientError if the worker refuses or does not answer."""

    async def list(self) -> DelayList:
        """Return all rules, and the state of their lanes on all workers."""
        return self._read(await self._answer("GET", _PATH), DelayList)

    async def put(self, name: str, source: str, delay: str, target: str) -> DelayView:
        """Add a rule, or replace the one of its name."""
        body = msgspec.json.encode(DelayBody(source=source, delay=delay, target=target))
        return self._read(await self._answer("PUT", _path_of(name), body), DelayView)

    async def remove(self, name: str) -> None:
        """Remove a rule."""
        if await self._answer("DELETE", _path_of(name)):
            raise self._no_worker("it answers more than that the rule is gone")

    def _read(self, answer: bytes, kind: type[T]) -> T:
        try:
            return msgspec.json.decode(answer, type=kind)
        except (msgspec.MsgspecError, UnicodeDecodeError) as error:
            raise self._no_worker(error) from error

    def _no_worker(self, why: object) -> ClientError:
        return ClientError(f"{self.url} is not a worker of light-scheduler, or one of another version: {why}")

    async def _answer(self, method: str, path: str, body: bytes | None = None) -> bytes:
        status, answer = await self.ask(method, path, body=body)
        if status in _DONE:
            return answer
        try:
            detail = msgspec.json.decode(answer, type=Problem).detail
        except (msgspec.MsgspecError, UnicodeDecodeError):
            raise ClientError(
                f"{self.url} answered {status}, and is not a worker of light-scheduler: check the address"
            ) from None
        raise ClientError(f"{self.url}: {detail}")


def _path_of(name: str) -> str:
    return f"{_PATH}/{quote(name, safe='')}"
