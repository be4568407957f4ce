"""Checks of `doctor` for access over HTTP: who can reach a worker, its certificates, and the tokens."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator, Sequence

from light_scheduler.access import AccessBook
from light_scheduler.access.accepted_tokens import access_book
from light_scheduler.clock import Clock
from light_scheduler.connection.certificates import read_certificates
from light_scheduler.errors import BrokerError, ConfigurationError
from light_scheduler.host.loopback import is_loopback
from light_scheduler.host.names import addresses_of
from light_scheduler.kafka.compacted import stored_entries
from light_scheduler.settings import Settings
from light_scheduler.wire.instants import format_instant

from .check import RENEW_MS, Check, check_certificate

_TIMEOUT_S = 5.0
_RESOLVER_S = 2.0
_NAMED = 5
_CERTIFICATES = ("web_ssl_certificate", "web_ssl_ca", "web_ssl_client_ca")


def check_web_certificates(settings: Settings) -> Iterator[Check]:
    """Check how long the certificates of HTTP are valid."""
    for setting in _CERTIFICATES:
        path = getattr(settings, setting)
        if path is None:
            continue
        try:
            end = min(one.end for one in read_certificates(setting, path))
        except ConfigurationError as error:
            yield Check("certificate", "fail", f"{setting} {error.reason}", f"change {setting}, or the file")
        else:
            yield check_certificate(setting, path, end)


def check_access(settings: Settings, clock: Clock) -> Iterator[Check]:
    """Check the stored tokens, and who can reach a worker without one."""
    topic = settings.topics.tenants
    try:
        book = access_book(asyncio.run(stored_entries(settings.connection, topic, _TIMEOUT_S)))
    except BrokerError as error:
        yield Check("access", "warn", f"the tokens cannot be read: {error}", f"check the topic {topic}")
        return
    yield check_listening(settings, book, addresses_of(settings.web_host, _RESOLVER_S))
    yield from check_tokens(book, clock.now())


def check_listening(settings: Settings, book: AccessBook, addresses: Sequence[str]) -> Check:
    """Say who can reach the HTTP server, and whether they are asked who they are.

    `addresses` are those of `web_host` on this machine, as far as they are known. A name can be another machine's or
    this one's elsewhere, so workers rely on the name alone, and so does what is asked of those who reach it.
    """
    host = settings.web_host
    if is_loopback(host):
        return Check("access", "ok", f"only this machine can reach HTTP at {host}")
    wants_certificates = settings.web_ssl_client_auth == "required"
    is_hidden = bool(addresses) and all(map(is_loopback, addresses))
    if not (book.is_set_up or settings.oidc is not None or wants_certificates):
        detail = f"other machines can reach HTTP at {host}, and requests need no token"
        fix = "create a token with `light-scheduler tokens create`, set oidc_issuer, or require client certificates"
        if is_hidden:
            detail = f"workers take {host} for a name that other machines can reach, and requests need no token"
            fix += f", or set web_host to 127.0.0.1: on this machine, {host} is {', '.join(addresses)}"
        return Check("access", "warn" if settings.insecure else "fail", f"{detail}: see docs/access.md", fix)
    if is_hidden:
        detail = f"on this machine, {host} is {', '.join(addresses)}, which workers elsewhere cannot reach"
        fix = "correct /etc/hosts or the DNS, or set web_host to an address of this machine in the network"
        return Check("access", "warn", detail, fix)
    if settings.web_ssl_certificate is None:
        detail = f"other machines can reach HTTP at {host}, and tokens are not encrypted on their way"
        return Check("access", "warn", detail, "set web_ssl_certificate, or put a proxy with TLS in front")
    return Check("access", "ok", f"HTTPS at {host}: {'client certificates' if wants_certificates else 'tokens'} needed")


def check_tokens(book: AccessBook, now: int) -> Iterator[Check]:
    """Name the tokens that have expired or will soon; `now` is UTC epoch ms."""
    if book.unreadable:
        detail = f"{book.unreadable} records of tokens cannot be read by this version: those tokens are not accepted"
        yield Check("tokens", "warn", detail, "run the version that wrote them, or create others")
    ending = [
        (token.expires_at, token)
        for token in book.tokens.values()
        if token.id not in book.revoked and token.expires_at is not None and token.expires_at - now <= RENEW_MS
    ]
    for end, token in sorted(ending, key=lambda pair: pair[0])[:_NAMED]:
        detail = f"token {token.name} ({token.id}) {'expired' if end <= now else 'expires'} at {format_instant(end)}"
        yield Check("tokens", "warn", detail, f"create another one, then `light-scheduler tokens revoke {token.id}`")
    if len(ending) > _NAMED:
        detail = f"{len(ending) - _NAMED} more tokens have expired, or expire within 14 days"
        yield Check("tokens", "warn", detail, "list them with `light-scheduler tokens list`")
    if not ending and not book.unreadable:
        yield Check("tokens", "ok", f"{len(book.tokens) - len(book.revoked)} tokens, none expires within 14 days")
