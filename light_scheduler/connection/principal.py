"""The principal of a connection: the name that the broker's ACLs use."""

from __future__ import annotations

import asyncio
import base64

import msgspec
from aiokafka.errors import KafkaError

from .arguments import Connection
from .certificates import read_certificates


class _Claims(msgspec.Struct):
    sub: str = ""


def principal_of(connection: Connection) -> str:
    """Return the principal that a broker with default rules gives to a connection. Do not call it within an event
    loop."""
    security = connection.security
    if security.uses_sasl:
        user = security.sasl_username if security.sasl_mechanism != "OAUTHBEARER" else _subject(connection)
        return f"User:{user}"
    if security.uses_tls and security.ssl_certificate is not None:
        return f"User:{read_certificates('ssl_certificate', security.ssl_certificate)[0].subject}"
    return "User:ANONYMOUS"


def _subject(connection: Connection) -> str:
    """Return the subject of the connection's tokens, without verifying them: the broker does that."""
    client_id = connection.security.sasl_oauth_client_id or ""
    try:
        token = asyncio.run(connection.aiokafka()["sasl_oauth_token_provider"].token())
        payload = token.split(".")[1]
        claims = msgspec.json.decode(base64.urlsafe_b64decode(payload + "=" * (-len(payload) % 4)), type=_Claims)
    except (KafkaError, ValueError, IndexError):
        return client_id
    return claims.sub or client_id
