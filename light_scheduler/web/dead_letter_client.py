"""Reads and redrives dead letters over the HTTP API, for `light-scheduler dead-letters`."""

from __future__ import annotations

from operator import attrgetter
from typing import TypeVar
from urllib.parse import quote

from light_scheduler.errors import ClientError

from .cluster.worker_http import Parameters
from .records.dead_letter_documents import DeadLetterDetail, DeadLetterPage, DeadLetterSummary, RedriveDocument
from .schedule_client import DECODED, ScheduleReader

T = TypeVar("T")

_PATH = "/api/v1/dead-letters"


class DeadLetterReader(ScheduleReader):
    """Raises QueryError naming a parameter that the worker refuses, and ClientError if there is no complete answer."""

    async def list_dead_letters(self, parameters: Parameters, limit: int) -> DeadLetterPage:
        """Return the newest `limit` dead letters; `parameters` are those of the API."""
        letters: list[DeadLetterSummary] = []
        of_page = attrgetter("dead_letters")
        async for page in self._pages(_PATH, parameters, limit, DeadLetterPage, of_page, self._no_tenant_or_worker()):
            letters += page.dead_letters
            searched_from, cursor = page.searched_from, page.next_cursor
        return DeadLetterPage(dead_letters=letters, searched_from=searched_from, next_cursor=cursor)

    async def dead_letter(self, letter: str) -> DeadLetterDetail:
        """Return a dead letter by its name, with its payload decoded."""
        found = await self._answer(f"{_PATH}/{quote(letter, safe='')}", DECODED, DeadLetterDetail)
        return _there(found, letter)

    async def redrive(self, letter: str) -> RedriveDocument:
        """Send a dead letter again."""
        path = f"{_PATH}/{quote(letter, safe='')}/redrive"
        return _there(await self._answer(path, {}, RedriveDocument, "POST"), letter)


def _there(found: T | None, letter: str) -> T:
    if found is None:
        raise ClientError(f"there is no dead letter {letter}")
    return found
