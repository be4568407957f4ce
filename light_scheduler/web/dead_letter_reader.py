"""Reads and redrives dead letters over the HTTP API: what `light-scheduler dead-letters` is made of."""

from __future__ import annotations

from typing import TypeVar
from urllib.parse import quote

from light_scheduler.errors import ClientError
from light_scheduler.tables.views import MAX_LIMIT

from .dead_letter_documents import DeadLetterDetail, DeadLetterPage, DeadLetterSummary, RedriveDocument
from .reader import DECODED, ScheduleReader
from .worker_http import Parameters

T = TypeVar("T")

_PATH = "/api/v1/dead-letters"


class DeadLetterReader(ScheduleReader):
    """Raises QueryError naming a parameter that the worker refuses, ClientError if there is no full answer."""

    async def list_dead_letters(self, parameters: Parameters, limit: int) -> DeadLetterPage:
        """Return the newest `limit` dead letters; `parameters` are those of the API."""
        letters: list[DeadLetterSummary] = []
        given = dict(parameters)
        while True:
            given["limit"] = str(min(MAX_LIMIT, limit - len(letters)))
            page = await self._answer(_PATH, given, DeadLetterPage)
            if page is None:
                # Also said of a tenant that the token may not see.
                raise ClientError(f"{self.url} knows no such tenant, or is not a worker of light-scheduler")
            letters += page.dead_letters
            if page.next_cursor is None or len(letters) == limit:
                return DeadLetterPage(
                    dead_letters=letters, searched_from=page.searched_from, next_cursor=page.next_cursor
                )
            given["cursor"] = page.next_cursor

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
