"""The HTTP handler of the cluster's state: `/info` of every worker, and which workers do not answer."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping
from http import HTTPStatus

import aiohttp
import msgspec
from aiohttp import web
from yarl import URL

from light_scheduler.clock import Clock
from light_scheduler.web.interfaces import Peers, owner_of_each
from light_scheduler.web.worker_documents import InfoDocument

from .answers import TOTAL_TIMEOUT_S
from .document import ClusterDocument, UnownedPartition, WorkerView
from .peer_client import PEER_CLIENT, PeerClient, why_unreachable

FRESH_S = 1.0
"""How long an answer is reused: all dashboards of a worker together query the others once in this time."""


class ClusterHandlers:
    """One method per operation. `own_info` returns this worker's `/info`, and `topics` are the commands topics."""

    def __init__(
        self, own_info: Callable[[], InfoDocument], peers: Peers, topics: frozenset[str], clock: Clock
    ) -> None:
        self._own_info = own_info
        self._known_peers = peers
        self._commands_topics = topics
        self._now = clock.now
        self._answer = b""
        self._fresh_until = 0.0
        self._asking = asyncio.Lock()

    async def cluster(self, request: web.Request) -> web.Response:
        return web.Response(body=await self.answer(request), content_type="application/json")

    async def answer(self, request: web.Request) -> bytes:
        """Return the state of the cluster, as JSON."""
        loop = asyncio.get_running_loop()
        async with self._asking:
            if loop.time() >= self._fresh_until:
                self._answer = msgspec.json.encode(await self._asked(request.app[PEER_CLIENT]))
                self._fresh_until = loop.time() + FRESH_S
            return self._answer

    async def _asked(self, client: PeerClient) -> ClusterDocument:
        owners, own_url = self._known_peers.owners(), self._known_peers.own_url
        others = sorted(owners.keys() - {own_url})
        answers = await asyncio.gather(*(_info_of(client, url) for url in others))
        workers = [
            WorkerView(url=url, partitions=_sorted(owners.get(url, {}), self._commands_topics), info=info, reason=why)
            for url, (info, why) in [(own_url, (self._own_info(), None)), *zip(others, answers, strict=True)]
        ]
        lanes = owner_of_each(self._known_peers, self._commands_topics)
        return ClusterDocument(
            time=self._now(),
            workers=sorted(workers, key=lambda worker: worker.url),
            unowned=[
                UnownedPartition(topic=topic, partition=partition)
                for (topic, partition), url in sorted(lanes.items())
                if url is None
            ],
        )


def _sorted(partitions: Mapping[str, list[int]], topics: frozenset[str]) -> dict[str, list[int]]:
    return {topic: sorted(partitions[topic]) for topic in sorted(topics & partitions.keys())}


async def _info_of(client: PeerClient, url: str) -> tuple[InfoDocument | None, str | None]:
    """Return a worker's `/info`, or why there is none."""
    try:
        async with client.get(URL(url.rstrip("/") + "/info"), TOTAL_TIMEOUT_S) as response:
            body = await response.read()
            if response.status != HTTPStatus.OK:
                return None, f"answered {response.status}"
        return msgspec.json.decode(body, type=InfoDocument), None
    except TimeoutError:
        return None, "did not answer in time"
    except (aiohttp.ClientError, ValueError, msgspec.MsgspecError) as error:
        return None, why_unreachable(error)
