"""All that is written: pages, files, topics and command lines, by where it was found. Tests look for secrets in it."""

from __future__ import annotations

import re
import subprocess
from pathlib import Path

import aiohttp

from light_scheduler.kafka.topic_plan import topic_plan
from light_scheduler.settings import Settings

from .api_cases import EVENT_STREAM
from .reading import read_all

BESIDE_THE_API = ("/", "/login", "/info", "/metrics", "/live", "/ready")


async def pages_of(session: aiohttp.ClientSession, url: str, tenant: str, id: str) -> dict[str, bytes]:
    """Return the answer to each GET of the API, whatever its status, and the pages beside it."""
    async with session.get(f"{url}/api/v1/openapi.json") as response:
        paths = (await response.json())["paths"]
    known = {"tenant": tenant, "id": id}
    asked = [path for path, methods in paths.items() if "get" in methods]
    found = {}
    for path in [*BESIDE_THE_API, *asked]:
        filled = re.sub(r"{(\w+)}", lambda match: known.get(match[1], "0-0"), path)
        async with session.get(url + filled) as response:
            endless = response.content_type == EVENT_STREAM
            found[path] = await (response.content.readuntil(b"\n\n") if endless else response.read())
    return found


async def topics_of(settings: Settings, servers: str) -> dict[str, bytes]:
    """Return what the topics of an application hold, read without a login."""
    found = {}
    for topic in [spec.name for spec in topic_plan(settings)]:
        records = await read_all(servers, topic)
        found[f"topic {topic}"] = b"".join(
            (record.key or b"") + (record.value or b"") + repr(record.headers).encode() for record in records
        )
    return found


def files_of(folder: Path) -> dict[str, bytes]:
    """Return what the files of a folder hold."""
    return {str(path): path.read_bytes() for path in folder.rglob("*") if path.is_file()}


def command_lines() -> bytes:
    """Return the number of every process of the machine, and how it was called."""
    return subprocess.check_output(["ps", "-eww", "-o", "pid,args"])
