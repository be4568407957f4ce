"""An application whose dashboard is looked at."""

from __future__ import annotations

import aiohttp

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

    async def put(self, tenant: str, id: str, **body: object) -> None:
        """Schedule a message far in the future, unless the body says otherwise."""
        command = {"trigger": {"after": "1d"}, "target": {"topic": self.application.target}, **body}
        url = f"{self.worker.url}/api/v1/tenants/{tenant}/schedules"
        async with self._session.post(url, json={"id": id, **command}) as response:
            assert response.status == 201, await response.text()

    async def state(self, tenant: str, id: str) -> str | None:
        """Return the state of a schedule; None: nothing of this id is pending."""
        async with self._session.get(f"{self.worker.url}/api/v1/tenants/{tenant}/schedules/{id}") as response:
            return (await response.json())["state"] if response.status == 200 else None
