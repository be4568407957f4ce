"""An SSL context that takes renewed files for its new connections.

Connections that are open keep what they were made with; Kafka clients drop idle ones and make new ones all the time.
"""

from __future__ import annotations

import logging
import ssl
from pathlib import Path
from typing import Any, Self

from light_scheduler.clock import SystemClock
from light_scheduler.errors import ConfigurationError

from .certificates import read_certificates, require_valid
from .files import SecretFile, require_readable, stamps
from .security import KafkaSecurity

log = logging.getLogger(__name__)


class RenewedContext(ssl.SSLContext):
    """Stands for the context that the files make at the moment of a connection.

    Files that are wrong after a change, such as a certificate whose key is not there yet, are reported, and the last
    context that worked is used until they change again.
    """

    _security: KafkaSecurity
    _made: ssl.SSLContext
    _stamps: tuple[Any, ...]

    def __new__(cls, security: KafkaSecurity) -> Self:  # noqa: ARG004 - the base class makes itself of a protocol
        return super().__new__(cls, ssl.PROTOCOL_TLS_CLIENT)

    def __init__(self, security: KafkaSecurity) -> None:
        """Raises ConfigurationError naming the setting at fault."""
        self._security = security
        self._stamps = stamps(watched_files(security))
        self._made = tls_context(security)

    def wrap_bio(self, *args: Any, **kwargs: Any) -> ssl.SSLObject:
        """Begin a connection, as asyncio does it."""
        return self._current().wrap_bio(*args, **kwargs)

    def wrap_socket(self, *args: Any, **kwargs: Any) -> ssl.SSLSocket:
        """Begin a connection over a blocking socket."""
        return self._current().wrap_socket(*args, **kwargs)

    def _current(self) -> ssl.SSLContext:
        found = stamps(watched_files(self._security))
        if found != self._stamps:
            self._stamps = found
            try:
                self._made = tls_context(self._security)
                log.info("the certificates for Kafka have changed: new connections use them")
            except ConfigurationError as error:
                log.warning("the certificate files for Kafka have changed, but the old ones stay in use: %s", error)
        return self._made


def watched_files(security: KafkaSecurity) -> tuple[Path, ...]:
    """Return the files that a context is made from."""
    files = (security.ssl_ca, security.ssl_certificate, security.ssl_key, security.ssl_key_password_file)
    return tuple(path for path in files if path is not None)


def tls_context(security: KafkaSecurity) -> ssl.SSLContext:
    """Return a context as the files are now. Raises ConfigurationError naming the setting at fault."""
    if security.ssl_ca is not None:
        read_certificates("ssl_ca", security.ssl_ca)
    context = ssl.create_default_context(cafile=None if security.ssl_ca is None else str(security.ssl_ca))
    context.check_hostname = security.ssl_check_hostname
    if security.ssl_certificate is not None:
        _load_own(context, security, security.ssl_certificate)
    return context


def _load_own(context: ssl.SSLContext, security: KafkaSecurity, certificate: Path) -> None:
    require_valid("ssl_certificate", certificate, read_certificates("ssl_certificate", certificate), SystemClock())
    key = security.ssl_key or certificate
    setting = "ssl_certificate" if security.ssl_key is None else "ssl_key"
    require_readable(setting, key)
    is_asked_for = False

    def password() -> str:
        nonlocal is_asked_for
        is_asked_for = True
        return key_password(security)

    try:
        context.load_cert_chain(certificate, key, password)
    except ssl.SSLError as error:
        if is_asked_for:
            given = security.ssl_key_password is not None or security.ssl_key_password_file is not None
            reason = "does not open" if given else "is not set, and a password protects"
            raise ConfigurationError("ssl_key_password", f"{reason} {key}: give the password of the key") from None
        if error.reason == "KEY_VALUES_MISMATCH":
            reason = f"{key} is not the key of the certificate in {certificate}: name the files of one pair"
        else:
            reason = f"{key} holds no private key in PEM form: it must have a line -----BEGIN PRIVATE KEY-----"
        raise ConfigurationError(setting, reason) from None


def key_password(security: KafkaSecurity) -> str:
    """Return what opens the key; empty if no password is set. Raises ConfigurationError."""
    if security.ssl_key_password_file is not None:
        return SecretFile("ssl_key_password_file", security.ssl_key_password_file).read().reveal()
    return "" if security.ssl_key_password is None else security.ssl_key_password.reveal()
