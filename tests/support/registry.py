"""A schema registry: its answers as its documentation has them, over HTTP."""

from __future__ import annotations

import json
from base64 import b64encode
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

from aiohttp import web


class FakeRegistry:
    """`schemas` by id; `failing` is a status that it answers with instead, if it is not None."""

    def __init__(self, schemas: dict[int, Any]) -> None:
        self.schemas = schemas
        self.failing: int | None = None
        self.login: tuple[str, str] | None = None
        """User and password, if it wants them."""
        self.more: dict[int, dict[str, Any]] = {}
        """Further members of the answers, by id."""
        self.asked: list[int] = []
        self.versions: dict[tuple[str, int], dict[str, Any]] = {}
        """Answers by subject and version; `deleted` ones are found only if that is asked for."""
        self.deleted: set[tuple[str, int]] = set()
        self.asked_versions: list[tuple[str, int]] = []
        self.subjects: dict[str, int] = {}
        """Subjects that schemas were registered under, and their ids."""

    async def answer(self, request: web.Request) -> web.Response:
        id = int(request.match_info["id"])
        self.asked.append(id)
        if (refusal := self._refusal(request)) is not None:
            return refusal
        if id not in self.schemas:
            return web.json_response({"error_code": 40403, "message": "Schema not found"}, status=404)
        return web.json_response({"schema": json.dumps(self.schemas[id]), **self.more.get(id, {})})

    def refer(self, name: str, subject: str, version: int, schema: Any, *references: dict[str, Any]) -> dict[str, Any]:
        """Register a version of a subject; return what refers to it."""
        answer = {"subject": subject, "version": version, "id": 100 + len(self.versions), "schema": json.dumps(schema)}
        self.versions[subject, version] = answer | ({"references": list(references)} if references else {})
        return {"name": name, "subject": subject, "version": version}

    async def answer_version(self, request: web.Request) -> web.Response:
        asked = request.match_info["subject"], int(request.match_info["version"])
        self.asked_versions.append(asked)
        if (refusal := self._refusal(request)) is not None:
            return refusal
        if asked[0] not in {subject for subject, _ in self.versions}:
            return web.json_response({"error_code": 40401, "message": "Subject not found."}, status=404)
        if asked not in self.versions or (asked in self.deleted and request.query.get("deleted") != "true"):
            return web.json_response({"error_code": 40402, "message": "Version not found."}, status=404)
        return web.json_response(self.versions[asked])

    async def register(self, request: web.Request) -> web.Response:
        if (refusal := self._refusal(request)) is not None:
            return refusal
        subject, schema = request.match_info["subject"], json.loads((await request.json())["schema"])
        assert subject not in self.subjects, "it is asked for again"
        id = next((id for id, known in self.schemas.items() if known == schema), len(self.schemas) + 1)
        self.schemas[id] = schema
        self.subjects[subject] = id
        return web.json_response({"id": id})

    def _refusal(self, request: web.Request) -> web.Response | None:
        if self.login is not None:
            user, password = self.login
            expected = b64encode(f"{user}:{password}".encode()).decode()
            if request.headers.get("Authorization") != f"Basic {expected}":
                return web.json_response({"error_code": 401, "message": "Unauthorized"}, status=401)
        if self.failing is not None:
            return web.json_response({"error_code": 50001, "message": "Error in the backend"}, status=self.failing)
        return None

    @asynccontextmanager
    async def serve(self, port: int) -> AsyncIterator[str]:
        """Serve at a port; yield the address."""
        app = web.Application()
        app.router.add_get("/schemas/ids/{id}", self.answer)
        app.router.add_get("/subjects/{subject}/versions/{version}", self.answer_version)
        app.router.add_post("/subjects/{subject}/versions", self.register)
        runner = web.AppRunner(app)
        await runner.setup()
        try:
            await web.TCPSite(runner, "127.0.0.1", port).start()
            yield f"http://127.0.0.1:{port}"
        finally:
            await runner.cleanup()
