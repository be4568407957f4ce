"""An identity provider (OpenID Connect) whose keys and whose presence a test changes."""

from __future__ import annotations

import http.server
import json
import threading
from typing import Any, Self

import jwt
from cryptography.hazmat.primitives.asymmetric import rsa

from light_scheduler.clock import SystemClock
from light_scheduler.host.ports import free_port

ROLE_CLAIM, TENANT_CLAIM = "realm.roles", "tenants"
MINUTE_S = 60


class Provider:
    """Serves its discovery document and the public halves of `keys`, by id; a context manager.

    `pause` ends the serving, `resume` begins it again at the same address.
    """

    def __init__(self, audience: str) -> None:
        self.audience = audience
        self.keys: dict[str, rsa.RSAPrivateKey] = {}
        self._port = free_port()  # which no outgoing connection takes while it is paused
        self._server = _Server(("127.0.0.1", self._port), self)
        self.issuer = f"http://127.0.0.1:{self._port}"
        self._thread = threading.Thread(target=self._server.serve_forever, kwargs={"poll_interval": 0.05})

    @property
    def settings(self) -> dict[str, str]:
        """Settings, as text, of workers that accept its tokens."""
        return {
            "oidc_issuer": self.issuer,
            "oidc_audience": self.audience,
            "oidc_role_claim": ROLE_CLAIM,
            "oidc_roles": "chiefs:admin,clerks:write,guests:read",
            "oidc_tenant_claim": TENANT_CLAIM,
        }

    def token(self, subject: str, roles: list[str], tenants: list[str], *, key_id: str, **claims: Any) -> str:
        """Sign a token of a minute with a key of the provider. `claims` are put into the place of those that it has."""
        return self.forged(subject, roles, tenants, key=self.keys[key_id], key_id=key_id, **claims)

    def forged(
        self, subject: str, roles: list[str], tenants: list[str], *, key: rsa.RSAPrivateKey, key_id: str, **claims: Any
    ) -> str:
        """Sign a token with any key, in the name of the provider."""
        now_s = SystemClock().now() // 1_000
        found = {
            "iss": self.issuer,
            "aud": self.audience,
            "sub": subject,
            "exp": now_s + MINUTE_S,
            "realm": {"roles": roles},
            TENANT_CLAIM: tenants,
        }
        return jwt.encode({**found, **claims}, key, algorithm="RS256", headers={"kid": key_id})

    def pause(self) -> None:
        """Serve no more: connections are refused."""
        self._server.shutdown()
        self._thread.join()
        self._server.server_close()

    def resume(self) -> None:
        """Serve again."""
        self._server = _Server(("127.0.0.1", self._port), self)
        self._thread = threading.Thread(target=self._server.serve_forever, kwargs={"poll_interval": 0.05})
        self._thread.start()

    def document(self, path: str) -> dict[str, Any] | None:
        """Return what is served at a path."""
        if path == "/.well-known/openid-configuration":
            return {"issuer": self.issuer, "jwks_uri": f"{self.issuer}/keys"}
        return {"keys": [_public(id, key) for id, key in self.keys.items()]} if path == "/keys" else None

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, *failure: object) -> None:
        self.pause()


class _Server(http.server.ThreadingHTTPServer):
    daemon_threads = True

    def __init__(self, address: tuple[str, int], provider: Provider) -> None:
        super().__init__(address, _Handler)
        self.provider = provider


class _Handler(http.server.BaseHTTPRequestHandler):
    server: _Server

    def do_GET(self) -> None:
        document = self.server.provider.document(self.path)
        body = json.dumps(document).encode()
        self.send_response(404 if document is None else 200)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, format: str, *args: object) -> None:
        """Say nothing."""


def new_key() -> rsa.RSAPrivateKey:
    """Return a key that tokens can be signed with."""
    return rsa.generate_private_key(public_exponent=65_537, key_size=2_048)


def _public(id: str, key: rsa.RSAPrivateKey) -> dict[str, Any]:
    return {**jwt.algorithms.RSAAlgorithm.to_jwk(key.public_key(), as_dict=True), "kid": id, "use": "sig"}
