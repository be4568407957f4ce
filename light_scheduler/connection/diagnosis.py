"""Why a connection to Kafka fails, in plain words.

The clients retry silently and end with a time-out without a cause. A single manual connection finds it at once.
"""

from __future__ import annotations

import asyncio
import ssl
from collections.abc import Mapping
from typing import Any

from aiokafka.conn import AIOKafkaConnection, collect_hosts
from aiokafka.errors import (
    IllegalSaslStateError,
    KafkaError,
    SaslAuthenticationFailed,
    UnsupportedSaslMechanismError,
)
from aiokafka.protocol.metadata import MetadataRequest

from light_scheduler.errors import BrokerError, BrokerRefused, BrokerUnreachable

from .arguments import Address, connection_to
from .tokens import TokenRefused, TokenServerFailed

TIMEOUT_S = 3.0
CLOSE_TIMEOUT_S = 1.0

_EXPIRED, _OTHER_HOST, _OTHER_ADDRESS = 10, 62, 64  # X509_V_ERR_...
_SELF_SIGNED = (18, 19, 20, 21)


async def fault_of(arguments: Mapping[str, Any], timeout: float = TIMEOUT_S) -> BrokerError | None:
    """Connect once to each server with aiokafka's arguments. Return the fault; None if one server accepts the
    connection.

    The servers are tried concurrently: this takes `timeout` (s) and the time to close connections, however many do not
    answer.
    """
    servers = arguments["bootstrap_servers"]
    rest = {name: value for name, value in arguments.items() if name in _TAKEN}
    attempts = [asyncio.create_task(_attempt(host, port, rest, timeout)) for host, port, _ in collect_hosts(servers)]
    fault: BrokerError = BrokerUnreachable(servers)
    try:
        for ended in asyncio.as_completed(attempts):
            if (failure := await ended) is None:
                return None
            if not isinstance(fault, BrokerRefused):
                fault = _fault(*failure, arguments) or fault
        return fault
    finally:
        for attempt in attempts:
            attempt.cancel()
        await asyncio.gather(*attempts, return_exceptions=True)


def require_access(address: Address, timeout: float = TIMEOUT_S) -> None:
    """Connect once, from a thread without an event loop. Raises BrokerError, ConfigurationError."""
    fault = asyncio.run(fault_of(connection_to(address).aiokafka(), timeout))
    if fault is not None:
        raise fault


_TAKEN = frozenset(
    {
        *("security_protocol", "ssl_context", "sasl_mechanism", "sasl_plain_username", "sasl_plain_password"),
        *("sasl_oauth_token_provider", "client_id"),
    }
)


async def _attempt(
    host: str, port: int, arguments: Mapping[str, Any], timeout: float
) -> tuple[str, BaseException] | None:
    """Connect to a server. Return its name and the error; None if it accepts the connection."""
    try:
        async with asyncio.timeout(timeout):
            await _connect(host, port, arguments)
        return None
    except (KafkaError, OSError, TimeoutError, EOFError) as error:
        return f"{host}:{port}", error


async def _connect(host: str, port: int, arguments: Mapping[str, Any]) -> None:
    connection = AIOKafkaConnection(host, port, **arguments)
    try:
        await connection.connect()
        # A listener that requires a login answers nothing before it, but closes the connection.
        await connection.send(MetadataRequest([]))
    finally:
        connection.close()
        if connection._protocol is not None:  # the event loop may end next, which would leave its sockets open
            await asyncio.wait([connection._closed_fut], timeout=CLOSE_TIMEOUT_S)


def _fault(server: str, error: BaseException, arguments: Mapping[str, Any]) -> BrokerError | None:
    """Explain an error in terms of the settings; None if nothing answers at the address."""
    chain = _chain(error)
    if (refusal := _refusal(chain, arguments)) is not None:
        return BrokerRefused(server, refusal)
    for one in chain:
        if isinstance(one, TokenServerFailed):
            return BrokerError(f"cannot log in to Kafka at {server}: {one.args[0]}")
    if not any(isinstance(one, EOFError | ConnectionResetError | BrokenPipeError) for one in chain):
        return None
    # A starting broker, or a proxy without a broker, behaves the same: it may be temporary.
    return BrokerError(
        f"Kafka at {server} closes the connection: it is not ready yet, or security_protocol is not what its listener "
        f"expects ({arguments.get('security_protocol', 'PLAINTEXT')} is set)"
    )


def _refusal(chain: list[BaseException], arguments: Mapping[str, Any]) -> str | None:
    for one in chain:
        if isinstance(one, ssl.SSLCertVerificationError):
            return _untrusted(one)
        if isinstance(one, ssl.SSLError):
            return _tls_refused(one)
        if isinstance(one, TokenRefused):
            return str(one.args[0])
        if isinstance(one, KafkaError) and (reason := _login_refused(one, arguments)) is not None:
            return reason
    return None


def _chain(error: BaseException) -> list[BaseException]:
    found: list[BaseException] = []
    step: BaseException | None = error
    while step is not None and step not in found:
        found.append(step)
        step = step.__cause__ or step.__context__
    return found


def _untrusted(error: ssl.SSLCertVerificationError) -> str:
    if error.verify_code == _EXPIRED:
        return "its certificate has expired: renew the broker's certificate"
    if error.verify_code in (_OTHER_HOST, _OTHER_ADDRESS):
        return (
            f"its certificate is for another host ({error.verify_message}): name the broker as its certificate does, "
            "or set ssl_check_hostname to false"
        )
    if error.verify_code in _SELF_SIGNED:
        return (
            f"its certificate is not trusted ({error.verify_message}): set ssl_ca to the certificate of the authority "
            "that signed it"
        )
    return f"its certificate is not accepted ({error.verify_message}): check ssl_ca and the broker's certificate"


def _tls_refused(error: ssl.SSLError) -> str:
    reason = error.reason or ""
    if "WRONG_VERSION" in reason or "RECORD_LAYER" in reason or "HTTP_REQUEST" in reason:
        return "it does not speak TLS: set security_protocol as the listener there has it, or name another port"
    if "CERTIFICATE_REQUIRED" in reason:
        return "it requires a client certificate: set ssl_certificate and ssl_key"
    if "CERTIFICATE_EXPIRED" in reason:
        return "it says that the client certificate has expired: renew the file that ssl_certificate names"
    if "ALERT" in reason and ("CERTIFICATE" in reason or "UNKNOWN_CA" in reason):
        return "it does not accept the client certificate: set ssl_certificate to one that the broker's CA signed"
    return f"the TLS handshake fails ({reason.lower().replace('_', ' ') or error}): check the settings ssl_..."


def _login_refused(error: KafkaError, arguments: Mapping[str, Any]) -> str | None:
    mechanism = arguments.get("sasl_mechanism")
    if isinstance(error, SaslAuthenticationFailed):
        if mechanism == "OAUTHBEARER":
            return "it does not accept the token: check what it expects of issuer, audience and scope"
        user = arguments.get("sasl_plain_username")
        return f"it does not accept the password of user {user}: check sasl_username, sasl_password and sasl_mechanism"
    if isinstance(error, UnsupportedSaslMechanismError):
        return f"its listener does not offer sasl_mechanism {mechanism}: set sasl_mechanism to one that it offers"
    if isinstance(error, IllegalSaslStateError):
        return "its listener takes no login: set security_protocol to PLAINTEXT or SSL, or name another port"
    return None
