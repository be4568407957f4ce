"""An application whose dashboard is looked at."""

from __future__ import annotations

import io
import json
import subprocess
import sys

import aiohttp

from light_scheduler.devkit.worker_process import worker_environment

from .application import Application, WorkerProcess


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
        url = f"{self.worker.url}/api/v1/tenants/{tenant}/schedules?timeout=60s"
        content = io.BytesIO(
            json.dumps({"id": id, **command}, ensure_ascii=False).encode()
        )  # a large one is sent in parts
        async with self._session.post(url, data=content, headers={"Content-Type": "application/json"}) as response:
            assert response.status == status, await response.text()

    async def reject(self, tenant: str, id: str, **body: object) -> None:
        """Make a dead letter: a command that comes after its time, and has to be rejected then."""
        late = {"trigger": {"at": 1_000_000_000_000}, "on_past": "reject"}
        command = {"id": id, **late, "target": {"topic": self.application.target}, **body}
        url = f"{self.worker.url}/api/v1/tenants/{tenant}/schedules?timeout=60s"
        async with self._session.post(url, json=command) as response:
            assert response.status == 400, await response.text()

    async def set_rules(self, tenant: str, **rules: object) -> None:
        """Give a tenant rules in place of those that it has."""
        async with self._session.put(f"{self.worker.url}/api/v1/tenants/{tenant}", json=rules) as response:
            assert response.status == 200, await response.text()

    async def state(self, tenant: str, id: str) -> str | None:
        """Return the state of a schedule; None: nothing of this id is pending."""
        async with self._session.get(f"{self.worker.url}/api/v1/tenants/{tenant}/schedules/{id}") as response:
            return (await response.json())["state"] if response.status == 200 else None

    def new_token(self, name: str, *options: str) -> str:
        """Create a token with the command line, and return its text."""
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
