"""An application whose dashboard is looked at."""

from __future__ import annotations

import asyncio
import io
import json
import subprocess
import sys
from collections.abc import Mapping
from http import HTTPStatus

import aiohttp

from light_scheduler.devkit.worker_process import worker_environment

from .application import Application, WorkerProcess
from .waiting import eventually


class Dashboard:
    """The workers' application, and what a test does to it over HTTP."""

    def __init__(self, application: Application, session: aiohttp.ClientSession) -> None:
        self.application = application
        self._session = session

    @property
    def worker(self) -> WorkerProcess:
        """The worker that serves the page."""
        return self.application.workers[0]

    async def put(self, tenant: str, id: str, status: int = 201, **body: object) -> None:
        """Schedule a message far in the future, unless the body says otherwise. 200: it is a newer version."""
        command = {"trigger": {"after": "1d"}, "target": {"topic": self.application.target}, **body}
        content = json.dumps({"id": id, **command}, ensure_ascii=False).encode()
        found = await self._answer("POST", f"/api/v1/tenants/{tenant}/schedules?timeout=60s", content)
        assert found[0] == status, found

    async def reject(self, tenant: str, id: str, **body: object) -> None:
        """Make a dead letter: a command that comes after its time, and has to be rejected then."""
        late = {"trigger": {"at": 1_000_000_000_000}, "on_past": "reject"}
        command = {"id": id, **late, "target": {"topic": self.application.target}, **body}
        content = json.dumps(command).encode()
        found = await self._answer("POST", f"/api/v1/tenants/{tenant}/schedules?timeout=60s", content)
        assert found[0] == 400, found

    async def set_rules(self, tenant: str, **rules: object) -> None:
        """Give a tenant rules in place of those that it has."""
        found = await self._answer("PUT", f"/api/v1/tenants/{tenant}", json.dumps(rules).encode())
        assert found[0] in (200, 201), found

    async def state(self, tenant: str, id: str) -> str | None:
        """Return the state of a schedule; None: nothing of this id is pending."""
        status, document = await self._answer("GET", f"/api/v1/tenants/{tenant}/schedules/{id}")
        assert status in (200, 404), document
        return json.loads(document)["state"] if status == 200 else None

    async def new_token(self, name: str, *options: str) -> str:
        """Create a token with the command line, and return its text when the worker knows it."""
        text = await asyncio.to_thread(self._created_token, name, *options)
        headers = {"Authorization": f"Bearer {text}"}

        async def is_known() -> bool:
            status, document = await self._answer("GET", "/api/v1/identity", headers=headers)
            return status == 200 and json.loads(document)["name"] == name

        await eventually(is_known, what=f"the token {name} in the worker")
        return text

    async def _answer(
        self, method: str, path: str, content: bytes | None = None, headers: Mapping[str, str] | None = None
    ) -> tuple[int, str]:
        """Return status and document of an answer, in the end: whoever is told to ask again later, does."""

        async def answer() -> tuple[int, str] | None:
            data = None if content is None else io.BytesIO(content)  # a large one is sent in parts
            given = {**(headers or {}), **({} if content is None else {"Content-Type": "application/json"})}
            async with self._session.request(method, self.worker.url + path, data=data, headers=given) as response:
                is_later = response.status == HTTPStatus.SERVICE_UNAVAILABLE and "Retry-After" in response.headers
                return None if is_later else (response.status, await response.text())

        return await eventually(answer, within=120, every=0.1, what=f"an answer to {method} {path}")

    def _created_token(self, name: str, *options: str) -> str:
        program = [sys.executable, "-c", "from light_scheduler.cli import main; main()"]
        done = subprocess.run(
            [*program, "tokens", "create", name, *options, "--json"],
            check=True,
            env=worker_environment(self.application.settings),
            capture_output=True,
            text=True,
            timeout=60,
        )
        return str(json.loads(done.stdout)["token"])
