"""Reads and changes delay rules over the HTTP API: what `light-scheduler delays` is made of."""

from __future__ import annotations

from http import HTTPStatus
from urllib.parse import quote

import msgspec

from light_scheduler.delays import DelayView
from light_scheduler.errors import ClientError

from .delay_documents import DelayBody, DelayList
from .problems import Problem
from .worker_http import WorkerHttp

_PATH = "/api/v1/delays"


class DelayClient(WorkerHttp):
    """Raises ClientError for what is refused or not answered."""

    async def list(self) -> DelayList:
        """Return all rules and what the workers make of them."""
        return msgspec.json.decode(await self._answer("GET", _PATH), type=DelayList)

    async def put(self, name: str, source: str, delay: str, target: str) -> DelayView:
        """Add a rule, or replace the one of its name."""
        body = msgspec.json.encode(DelayBody(source=source, delay=delay, target=target))
        return msgspec.json.decode(await self._answer("PUT", _path_of(name), body), type=DelayView)

    async def remove(self, name: str) -> None:
        """Remove a rule."""
        await self._answer("DELETE", _path_of(name))

    async def _answer(self, method: str, path: str, body: bytes | None = None) -> bytes:
        status, answer = await self.ask(method, path, body=body)
        if status < HTTPStatus.BAD_REQUEST:
            return answer
        try:
            detail = msgspec.json.decode(answer, type=Problem).detail
        except msgspec.MsgspecError:
            detail = f"answered {status}, but not like light-scheduler"
        raise ClientError(f"{self.url}: {detail}")


def _path_of(name: str) -> str:
    return f"{_PATH}/{quote(name, safe='')}"
