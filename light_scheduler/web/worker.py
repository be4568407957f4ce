"""The worker that the handlers run in."""

from __future__ import annotations

from dataclasses import dataclass

import aiohttp
from aiohttp import web

from light_scheduler.clock import Clock
from light_scheduler.settings import Settings

from .cluster import Delays, Lanes, Peers
from .command_channel import Commands

PEER_SESSION = web.AppKey("peer_session", aiohttp.ClientSession)
"""Where the application keeps its session for requests to other workers."""


@dataclass(frozen=True)
class Worker:
    """All that the handlers know of the worker they run in."""

    lanes: Lanes
    delays: Delays
    commands: Commands
    peers: Peers
    settings: Settings
    clock: Clock

    @property
    def topics(self) -> frozenset[str]:
        """The commands topics."""
        return frozenset(source.name for source in self.settings.inputs)
