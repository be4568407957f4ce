"""The JSON documents of tokens."""

from __future__ import annotations

from typing import Annotated, Literal

import msgspec
from msgspec import UNSET, Meta, UnsetType

from light_scheduler.access import AccessBook, Role, Token
from light_scheduler.connection import Secret
from light_scheduler.durations import parse_typed_duration
from light_scheduler.tables.views import QueryError
from light_scheduler.web.forms.parameters import checked

Instant = Annotated[int, Meta(description="UTC epoch ms.")]


class TokenBody(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A token to create."""

    name: Annotated[str, Meta(description="Who or what uses the token. It is shown in lists and in the audit trail.")]
    role: Role
    tenants: Annotated[list[str] | None, Meta(description="Tenants that the token is for; null: all tenants.")]
    expires_in: (
        Annotated[str, Meta(description="How long the token is valid: 90d, 12h. Default: it does not expire.")]
        | UnsetType
    ) = UNSET


class RotateParameters(msgspec.Struct, frozen=True, kw_only=True):
    """The query string of a rotation."""

    keep: Annotated[str, Meta(description="How long the old secret stays valid: 0, 12h, 1d.")] = "1d"

    @property
    def keep_ms(self) -> int:
        """How long the old secret stays valid, ms. Raises QueryError."""
        ms = checked("keep", parse_typed_duration, self.keep)
        if ms < 0:
            raise QueryError("keep", f"{self.keep!r} must not be negative")
        return ms


class TokenDocument(msgspec.Struct, frozen=True, kw_only=True):
    """A token, without its secret."""

    id: str
    name: str
    role: Role
    tenants: Annotated[list[str] | None, Meta(description="null: all tenants.")]
    state: Literal["valid", "expired", "revoked"]
    created_at: Instant
    created_by: str
    expires_at: Annotated[int | None, Meta(description="UTC epoch ms; null: it does not expire.")]
    last_used_at: Annotated[int | None, Meta(description="UTC epoch ms, up to five minutes late; null: never.")]
    texts: Annotated[int, Meta(description="Number of valid secrets: 2 while a rotation is under way.")]

    @classmethod
    def of(cls, token: Token, book: AccessBook, now: int) -> TokenDocument:
        """Show a token that is, or will be, in a book."""
        revoked = token.id in book.revoked
        return cls(
            id=token.id,
            name=token.name,
            role=token.role,
            tenants=None if token.tenants is None else sorted(token.tenants),
            state="revoked" if revoked else "expired" if token.is_expired(now) else "valid",
            created_at=token.created_at,
            created_by=token.created_by,
            expires_at=token.expires_at,
            last_used_at=book.used.get(token.id),
            texts=sum(1 for secret in token.secrets if secret.ends_at is None or now < secret.ends_at),
        )


class NewTokenDocument(msgspec.Struct, frozen=True, kw_only=True):
    """A token and its secret."""

    token: Annotated[str, Meta(description="The secret to send. It is shown only here: it is not stored.")]
    about: TokenDocument

    @classmethod
    def of(cls, token: Token, text: Secret, book: AccessBook, now: int) -> NewTokenDocument:
        """Show a new token."""
        return cls(token=text.reveal(), about=TokenDocument.of(token, book, now))


class TokenList(msgspec.Struct, frozen=True, kw_only=True):
    """All tokens, the oldest first. Tokens that were revoked stay in the list."""

    tokens: list[TokenDocument]

    @classmethod
    def of(cls, book: AccessBook, now: int) -> TokenList:
        """Show all tokens of a book."""
        tokens = sorted(book.tokens.values(), key=lambda token: (token.created_at, token.id))
        return cls(tokens=[TokenDocument.of(token, book, now) for token in tokens])
