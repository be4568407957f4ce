"""Both sides of HTTPS between workers and their clients: SSL contexts, and why a connection fails."""

from __future__ import annotations

import ssl
from functools import lru_cache

from .certificates import read_certificates
from .http_security import HttpSecurity
from .renewed_files import Renewed
from .tls import OwnCertificate, RenewedContext, given, load_own, not_whole, trusting

_MODES = {"none": ssl.CERT_NONE, "requested": ssl.CERT_OPTIONAL, "required": ssl.CERT_REQUIRED}


def server_context(security: HttpSecurity) -> ssl.SSLContext | None:
    """Return the SSL context of a worker's HTTP server; None: HTTP without TLS.

    Raises ConfigurationError naming the invalid setting.
    """
    own = _own(security)
    if own is None:
        return None
    files = given(own.certificate, own.key, own.password_file, security.web_ssl_client_ca)
    return RenewedContext(Renewed(lambda: _serving(security, own), files, "certificates for HTTP"))


@lru_cache
def client_context(security: HttpSecurity) -> ssl.SSLContext:
    """Return the SSL context for requests to workers. Raises ConfigurationError naming the invalid setting."""
    own = _own(security)
    of_own = () if own is None else (own.certificate, own.key, own.password_file)
    files = given(security.web_ssl_ca, *of_own)
    return RenewedContext(Renewed(lambda: _asking(security, own), files, "certificates for questions to workers"))


def tls_fault(error: BaseException) -> str | None:
    """Return why a request to a worker fails, with advice, if TLS is the cause; otherwise None."""
    if isinstance(error, ssl.SSLCertVerificationError):
        return (
            f"its certificate is not accepted ({error.verify_message}): set web_ssl_ca to the certificate of the "
            "authority that signed it, and use a host that it names"
        )
    if not isinstance(error, ssl.SSLError):
        return None
    reason = error.reason or ""
    if "CERTIFICATE_REQUIRED" in reason:
        return "it requires a client certificate: set web_ssl_certificate and web_ssl_key"
    if "ALERT" in reason and ("CERTIFICATE" in reason or "UNKNOWN_CA" in reason):
        return "it does not accept the client certificate: set web_ssl_certificate to one that its client CA signed"
    if "WRONG_VERSION" in reason or "RECORD_LAYER" in reason or "HTTP_REQUEST" in reason:
        return "it does not speak TLS: use http://"
    return f"the TLS handshake fails ({reason.lower().replace('_', ' ') or error})"


def _own(security: HttpSecurity) -> OwnCertificate | None:
    if security.web_ssl_certificate is None:
        return None
    password = security.web_ssl_key_password, security.web_ssl_key_password_file
    return OwnCertificate("web_ssl_", security.web_ssl_certificate, security.web_ssl_key, *password)


def _serving(security: HttpSecurity, own: OwnCertificate) -> ssl.SSLContext:
    context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
    context.minimum_version = ssl.TLSVersion.TLSv1_2
    load_own(context, own)
    if security.web_ssl_client_ca is not None:
        read_certificates("web_ssl_client_ca", security.web_ssl_client_ca)
        try:
            context.load_verify_locations(security.web_ssl_client_ca)
        except OSError as error:
            raise not_whole("web_ssl_client_ca", security.web_ssl_client_ca, error) from None
    context.verify_mode = _MODES[security.web_ssl_client_auth]
    return context


def _asking(security: HttpSecurity, own: OwnCertificate | None) -> ssl.SSLContext:
    context = trusting("web_ssl_ca", security.web_ssl_ca)
    if own is not None:
        load_own(context, own)
    return context
