"""Who may ask the workers of a cluster in memory."""

from __future__ import annotations

from light_scheduler.access import AccessBook, Token
from light_scheduler.access.oidc import Oidc
from light_scheduler.access.store import TokenStore
from light_scheduler.clock import SettableClock
from light_scheduler.model import Requester

from .topics import MemoryTopic

TESTER = Requester("test", "")


class MemoryAccess:
    """One worker's view of who may ask."""

    def __init__(self, topic: MemoryTopic, clock: SettableClock) -> None:
        self.topic = topic
        self.store = TokenStore(topic, clock)
        self.uses: list[str] = []
        self.oidc: Oidc | None = None

    @property
    def is_loaded(self) -> bool:
        return self.topic.is_loaded

    @property
    def book(self) -> AccessBook:
        return self.store.book

    def used(self, token: Token) -> None:
        self.uses.append(token.id)
