"""The worker processes of this node as one: any of them answers for all, on the port that they share.

They get each other's own answers with requests that are marked local.
"""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from http import HTTPStatus
from itertools import chain
from typing import NamedTuple

import aiohttp
import msgspec
from prometheus_client import CollectorRegistry
from yarl import URL

from light_scheduler.lanes.context.status import TargetStatus
from light_scheduler.processes import Process
from light_scheduler.web.forms.problems import Problem
from light_scheduler.web.metrics.exposition import ACCEPT, Exposition
from light_scheduler.web.metrics.node import Answering, OfProcess
from light_scheduler.web.worker_documents import InfoDocument, ProcessView

from .peer_client import NO_HEADERS, PeerClient

ANSWER_S = 2.0
"""A process that takes longer counts as unavailable, so that a frozen one delays a scrape only briefly."""


class _Answer(NamedTuple):
    """The answer of a process; `status` is None if there was none."""

    status: int | None
    body: bytes


class Node:
    """`process` is this process, and `registry` has its metrics."""

    def __init__(self, process: Process, registry: CollectorRegistry) -> None:
        self._process = process
        self.own = OfProcess(registry, process)
        """This process's own metrics."""

    async def metrics(self, client: PeerClient, exposition: Exposition) -> bytes:
        """Return the metrics of all processes, and which of them answered."""
        others = _ok(await self._ask(client, "/metrics", {ACCEPT: exposition.media_type}))
        answering = Answering(self._process, {self._process.number, *others})
        own = [exposition.generate(collector) for collector in (answering, self.own)]
        return exposition.together([*own, *others.values()])

    async def why_not_ready(self, own: list[str], client: PeerClient) -> list[str]:
        """Return a reason for each process and partition of the node that is not ready. `own` are the reasons of this
        process."""
        reasons = {self._process.number: own}
        for number, answer in (await self._ask(client, "/ready")).items():
            reasons[number] = _reasons_in(answer)
        return [f"process {number}: {reason}" for number in sorted(reasons) for reason in reasons[number]]

    async def info(self, own: InfoDocument, client: PeerClient) -> InfoDocument:
        """Return the info of all processes as one document. Shared facts are taken from this process."""
        found = {self._process.number: own}
        for number, body in _ok(await self._ask(client, "/info")).items():
            found[number] = msgspec.json.decode(body, type=InfoDocument)
        documents = [found[number] for number in sorted(found)]
        return msgspec.structs.replace(
            own,
            lanes=list(chain.from_iterable(document.lanes for document in documents)),
            standbys=list(chain.from_iterable(document.standbys for document in documents)),
            targets=_merged(list(chain.from_iterable(document.targets for document in documents))),
            delays=list(chain.from_iterable(document.delays for document in documents)),
            processes=[
                ProcessView(process=number, url=url, answers=number in found)
                for number, url in enumerate(self._process.urls)
            ],
        )

    async def _ask(self, client: PeerClient, path: str, headers: Mapping[str, str] = NO_HEADERS) -> dict[int, _Answer]:
        """Ask all other processes for their own answers, concurrently: number -> answer."""
        others = {number: url for number, url in enumerate(self._process.urls) if number != self._process.number}
        answers = await asyncio.gather(*(_asked(client, URL(url + path), headers) for url in others.values()))
        return dict(zip(others, answers, strict=True))


async def _asked(client: PeerClient, url: URL, headers: Mapping[str, str]) -> _Answer:
    try:
        async with client.get(url, ANSWER_S, headers) as response:
            return _Answer(response.status, await response.read())
    except (TimeoutError, aiohttp.ClientError):
        return _Answer(None, b"")


def _ok(answers: dict[int, _Answer]) -> dict[int, bytes]:
    return {number: answer.body for number, answer in answers.items() if answer.status == HTTPStatus.OK}


def _reasons_in(answer: _Answer) -> list[str]:
    if answer.status == HTTPStatus.OK:
        return []
    if answer.status != HTTPStatus.SERVICE_UNAVAILABLE:
        return ["it does not answer"]
    problem = msgspec.json.decode(answer.body, type=Problem)
    return problem.reasons or [problem.detail]


def _merged(targets: list[TargetStatus]) -> list[TargetStatus]:
    """Return one entry per topic, even if several processes report it."""
    by_topic: dict[str, list[TargetStatus]] = {}
    for target in targets:
        by_topic.setdefault(target.topic, []).append(target)
    return [_as_one(by_topic[topic]) for topic in sorted(by_topic)]


def _as_one(seen: list[TargetStatus]) -> TargetStatus:
    is_whole = any(not target.partitions for target in seen)
    return msgspec.structs.replace(
        seen[0],
        partitions=[] if is_whole else sorted({partition for target in seen for partition in target.partitions}),
        unavailable_since=min(target.unavailable_since for target in seen),
        waiting=sum(target.waiting for target in seen),
        reason="; ".join(sorted({target.reason for target in seen})),
    )
