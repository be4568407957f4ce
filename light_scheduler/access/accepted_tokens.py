"""All tokens at one moment: which are accepted, and which token a text stands for. Pure."""

from __future__ import annotations

import logging
from collections.abc import Mapping
from dataclasses import dataclass, field, replace

from light_scheduler.errors import FormatError

from .records import (
    PEER_SECRET_KEY,
    Revocation,
    Rotation,
    Use,
    decode_peer_secret,
    decode_record,
    revoked_id,
    rotated_id,
)
from .tokens import Token, TokenError, parts_of

log = logging.getLogger(__name__)


@dataclass(frozen=True)
class AccessBook:
    """`unreadable` counts records of tokens that this version cannot read; those tokens are not accepted.

    An unreadable revocation is stored as None, and still applies. Revoked tokens stay in the book, so that requests
    still need a token after the last one is revoked. `was_set_up` says that there were tokens whose records have been
    lost.
    """

    tokens: Mapping[str, Token] = field(default_factory=dict)
    revoked: Mapping[str, Revocation | None] = field(default_factory=dict)
    used: Mapping[str, int] = field(default_factory=dict)
    peer_secret: bytes | None = field(default=None, repr=False)
    unreadable: int = 0
    was_set_up: bool = False

    @property
    def is_set_up(self) -> bool:
        """Whether requests need a token: there is or was one."""
        return bool(self.tokens or self.revoked or self.unreadable or self.was_set_up)

    def after(self, before: AccessBook) -> AccessBook:
        """Return this book as the successor of another one: if all tokens were lost, requests still need one."""
        return self if self.is_set_up or not before.is_set_up else replace(self, was_set_up=True)

    def holder(self, text: str, now: int) -> Token:
        """Return the token that a text stands for. Raises TokenError; without a valid secret, it reveals nothing."""
        id, hashed = parts_of(text)
        token = self.tokens.get(id)
        if token is None or not token.accepts(hashed, now):
            raise TokenError("token", "is not a token of this application")
        if id in self.revoked:
            raise TokenError("token", "was revoked")
        if token.is_expired(now):
            raise TokenError("token", "has expired")
        return token

    def state(self, id: str, now: int) -> str:
        """Return `valid`, `expired` or `revoked`."""
        if id in self.revoked:
            return "revoked"
        return "expired" if self.tokens[id].is_expired(now) else "valid"


def access_book(entries: Mapping[bytes, bytes]) -> AccessBook:
    """Return the tokens in a compacted topic; other records are skipped.

    `entries` are in the order of the topic, which decides between rotations of the same text.
    """
    tokens: dict[str, Token] = {}
    revoked: dict[str, Revocation | None] = {}
    used: dict[str, int] = {}
    unreadable = 0
    for key, value in entries.items():
        try:
            found = decode_record(key, value)
        except FormatError as error:
            unreadable += 1
            log.warning("a token is not accepted: %s", error)
            if (id := revoked_id(key)) is not None:
                revoked[id] = None
            if (id := rotated_id(key)) is not None:
                tokens.pop(id, None)  # its texts are unknown
            continue
        if found is None:
            continue
        id, event = found
        if isinstance(event, Token):
            tokens[id] = event
        elif isinstance(event, Rotation):
            if id in tokens and tokens[id].secrets[-1].sha256 == event.before:
                tokens[id] = replace(tokens[id], secrets=tuple(event.secrets))
        elif isinstance(event, Revocation):
            revoked[id] = event
        elif isinstance(event, Use):
            used[id] = event.at
    return AccessBook(tokens, revoked, used, _peer_secret(entries), unreadable)


def _peer_secret(entries: Mapping[bytes, bytes]) -> bytes | None:
    value = entries.get(PEER_SECRET_KEY)
    if value is None:
        return None
    try:
        return decode_peer_secret(value)
    except FormatError as error:
        log.warning("%s", error)
        return None
