"""An SSL context that uses renewed files for new connections.

Open connections keep their certificates, but Kafka clients regularly drop idle connections and make new ones.
"""

from __future__ import annotations

import ssl
from pathlib import Path
from typing import Any, NamedTuple, Self

from light_scheduler.clock import SystemClock
from light_scheduler.errors import ConfigurationError

from .certificates import read_certificates, require_valid
from .files import SecretFile, require_readable, unreadable
from .renewed_files import Renewed
from .secret import Secret
from .security import KafkaSecurity


class OwnCertificate(NamedTuple):
    """A certificate and its key. `settings` is the common prefix of their settings."""

    settings: str
    certificate: Path
    key: Path | None
    password: Secret | None
    password_file: Path | None


class RenewedContext(ssl.SSLContext):
    """Delegates each new connection to a context made from the current files."""

    _contexts: Renewed[ssl.SSLContext]

    def __new__(cls, *_: Any) -> Self:
        """Create the base class for a protocol. Its own configuration is not used."""
        return super().__new__(cls, ssl.PROTOCOL_TLS_CLIENT)

    def __init__(self, contexts: Renewed[ssl.SSLContext]) -> None:
        self._contexts = contexts

    def wrap_bio(self, *args: Any, **kwargs: Any) -> ssl.SSLObject:
        """Begin a connection for asyncio."""
        return self._contexts.current().wrap_bio(*args, **kwargs)

    def wrap_socket(self, *args: Any, **kwargs: Any) -> ssl.SSLSocket:
        """Begin a connection over a blocking socket."""
        return self._contexts.current().wrap_socket(*args, **kwargs)


def kafka_context(security: KafkaSecurity) -> RenewedContext:
    """Return the SSL context of Kafka clients. Raises ConfigurationError naming the invalid setting."""
    files = (security.ssl_ca, security.ssl_certificate, security.ssl_key, security.ssl_key_password_file)
    return RenewedContext(Renewed(lambda: tls_context(security), given(*files), "certificates for Kafka"))


def given(*files: Path | None) -> tuple[Path, ...]:
    """Return the files that are not None."""
    return tuple(path for path in files if path is not None)


def tls_context(security: KafkaSecurity) -> ssl.SSLContext:
    """Return an SSL context made from the files' current content. Raises ConfigurationError naming the invalid
    setting."""
    context = trusting("ssl_ca", security.ssl_ca)
    context.check_hostname = security.ssl_check_hostname
    if (own := own_certificate(security)) is not None:
        load_own(context, own)
    return context


def own_certificate(security: KafkaSecurity) -> OwnCertificate | None:
    """Return the certificate that a Kafka client presents, if it has one."""
    if security.ssl_certificate is None:
        return None
    password = security.ssl_key_password, security.ssl_key_password_file
    return OwnCertificate("ssl_", security.ssl_certificate, security.ssl_key, *password)


def trusting(setting: str, authorities: Path | None) -> ssl.SSLContext:
    """Return a client's context that trusts the authorities in a file; default: those of the system.

    Raises ConfigurationError naming the file's setting.
    """
    if authorities is None:
        return ssl.create_default_context()
    read_certificates(setting, authorities)
    try:
        return ssl.create_default_context(cafile=str(authorities))
    except OSError as error:
        raise not_whole(setting, authorities, error) from None


def not_whole(setting: str, authorities: Path, error: OSError) -> ConfigurationError:
    """Return the error for a file that has changed since it was read, or is incomplete."""
    return ConfigurationError(setting, f"{authorities} cannot be used ({error}): every certificate in it must be whole")


def load_own(context: ssl.SSLContext, own: OwnCertificate) -> None:
    """Load a certificate into a context. Raises ConfigurationError naming the invalid setting."""
    certificate = own.certificate
    setting = f"{own.settings}certificate"
    require_valid(setting, certificate, read_certificates(setting, certificate), SystemClock())
    key = own.key or certificate
    setting = setting if own.key is None else f"{own.settings}key"
    require_readable(setting, key)
    is_asked_for = False

    def password() -> str:
        nonlocal is_asked_for
        is_asked_for = True
        return key_password(own)

    try:
        context.load_cert_chain(certificate, key, password)
    except ssl.SSLError as error:
        if is_asked_for:
            is_given = own.password is not None or own.password_file is not None
            reason = "does not open" if is_given else "is not set, and a password protects"
            setting = f"{own.settings}key_password"
            raise ConfigurationError(setting, f"{reason} {key}: give the password of the key") from None
        if error.reason == "KEY_VALUES_MISMATCH":
            reason = f"{key} is not the key of the certificate in {certificate}: name the files of one pair"
        else:
            reason = f"{key} holds no private key in PEM form: it must have a line -----BEGIN PRIVATE KEY-----"
        raise ConfigurationError(setting, reason) from None
    except ValueError as error:  # without its cause, which may contain the password
        raise ConfigurationError(f"{own.settings}key_password", f"does not open {key}: {_limit(error)}") from None
    except OSError as error:  # the file has disappeared since it was examined
        raise unreadable(setting, key, error) from None


def _limit(error: ValueError) -> str:
    """Explain why a text cannot be the password of a key."""
    return "it must be text in UTF-8" if isinstance(error, UnicodeError) else str(error)


def key_password(own: OwnCertificate) -> str:
    """Return the password of the key; empty if none is set. Raises ConfigurationError."""
    if own.password_file is not None:
        return SecretFile(f"{own.settings}key_password_file", own.password_file).read().reveal()
    return "" if own.password is None else own.password.reveal()
