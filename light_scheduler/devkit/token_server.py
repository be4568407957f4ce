"""A server that issues tokens for client credentials, and serves the keys to verify them."""

from __future__ import annotations

import base64
import http.server
import json
import threading
from typing import Any, Self
from urllib.parse import parse_qs, unquote_plus

from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric import padding, rsa

from light_scheduler.clock import SystemClock

from .listeners import TokenChecks

KEY_ID = "devkit"


class TokenServer(http.server.ThreadingHTTPServer):
    """`clients` are ids and secrets; a token's subject is its client's id. A context manager.

    While `answers` is cleared, requests for tokens wait.
    """

    daemon_threads = True

    def __init__(self, clients: dict[str, str], *, audience: str = "kafka", life_s: int = 3_600) -> None:
        super().__init__(("127.0.0.1", 0), _Handler)
        self.clients = clients
        self.audience = audience
        self.life_s = life_s
        self.issuer = "https://tokens.test"
        self.asked: list[dict[str, list[str]]] = []
        self.issued_to: list[str] = []
        self.answers = threading.Event()
        self.answers.set()
        self._key = rsa.generate_private_key(public_exponent=65_537, key_size=2_048)
        self._thread = threading.Thread(target=self.serve_forever, kwargs={"poll_interval": 0.05})

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.server_address[1]}/token"

    @property
    def keys_url(self) -> str:
        return f"http://127.0.0.1:{self.server_address[1]}/keys"

    @property
    def checks(self) -> TokenChecks:
        """Settings for a listener that accepts the tokens of this server."""
        return TokenChecks(self.keys_url, self.issuer, self.audience)

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, *failure: object) -> None:
        self.answers.set()
        self.shutdown()
        self._thread.join()
        self.server_close()

    def keys(self) -> dict[str, Any]:
        numbers = self._key.public_key().public_numbers()
        key = {
            "kty": "RSA",
            "use": "sig",
            "alg": "RS256",
            "kid": KEY_ID,
            "n": _number(numbers.n),
            "e": _number(numbers.e),
        }
        return {"keys": [key]}

    def token(self, subject: str) -> str:
        now_s = SystemClock().now() // 1_000
        claims = {"sub": subject, "iss": self.issuer, "aud": self.audience, "iat": now_s, "exp": now_s + self.life_s}
        parts = ({"alg": "RS256", "typ": "JWT", "kid": KEY_ID}, {**claims, "scope": "kafka"})
        signed = ".".join(_text(json.dumps(part).encode()) for part in parts)
        return f"{signed}.{_text(self._key.sign(signed.encode(), padding.PKCS1v15(), hashes.SHA256()))}"


class _Handler(http.server.BaseHTTPRequestHandler):
    server: TokenServer

    def do_GET(self) -> None:
        self._answer(200, self.server.keys())

    def do_POST(self) -> None:
        form = parse_qs(self.rfile.read(int(self.headers["Content-Length"])).decode())
        self.server.asked.append(form)
        self.server.answers.wait(30)
        kind, _, encoded = self.headers.get("Authorization", "").partition(" ")
        login = base64.b64decode(encoded).decode().partition(":")
        client, secret = unquote_plus(login[0]), unquote_plus(login[2])  # RFC 6749, section 2.3.1
        if kind != "Basic" or self.server.clients.get(client) != secret:
            self._answer(401, {"error": "invalid_client", "error_description": "unknown client or wrong secret"})
        else:
            token = self.server.token(client)
            self.server.issued_to.append(client)
            self._answer(200, {"access_token": token, "token_type": "Bearer", "expires_in": self.server.life_s})

    def _answer(self, status: int, document: object) -> None:
        body = json.dumps(document).encode()
        self.send_response(status)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, format: str, *args: object) -> None:
        """Log nothing."""


def _text(content: bytes) -> str:
    return base64.urlsafe_b64encode(content).rstrip(b"=").decode()


def _number(number: int) -> str:
    return _text(number.to_bytes((number.bit_length() + 7) // 8, "big"))
