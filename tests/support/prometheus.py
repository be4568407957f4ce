"""A real Prometheus: where it is, and a server of it that scrapes what a test says."""

from __future__ import annotations

import asyncio
import contextlib
import re
import shutil
import subprocess
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import aiohttp
import pytest
import yaml

from light_scheduler.host.ports import free_port

from .waiting import eventually

ROOT = Path(__file__).parents[2]
INSTALLED = ROOT / "build" / "prometheus" / "usr" / "bin"
"""Where `make prometheus` puts it, if there is none on the path."""

ALERTS = ROOT / "deploy" / "helm" / "light-scheduler" / "files" / "alerts.yaml"
_DURATION = re.compile(r"(\d+)([smh])")
_SECONDS = {"s": 1, "m": 60, "h": 3_600}


def find(program: str) -> str | None:
    """Return the path of `prometheus` or `promtool`, if it is there."""
    return shutil.which(program) or shutil.which(program, path=INSTALLED)


def required(program: str) -> str:
    """Return the path of a program; skip the test where there is none."""
    path = find(program)
    if path is None:
        pytest.skip(f"{program} is not installed: `make prometheus` does")
    return path


def hastened(rules: Path, times: int) -> dict[str, Any]:
    """Return the document of a rule file in which each duration passes so many times as fast."""

    def shorter(found: re.Match[str]) -> str:
        return f"{int(found[1]) * _SECONDS[found[2]] * 1_000 // times}ms"

    document: dict[str, Any] = yaml.safe_load(rules.read_text(encoding="utf-8"))
    for group in document["groups"]:
        for rule in group["rules"]:
            rule["expr"] = re.sub(r"(?<=\[)\d+[smh](?=\])", lambda each: _DURATION.sub(shorter, each[0]), rule["expr"])
            if "for" in rule:
                rule["for"] = _DURATION.sub(shorter, rule["for"])
    return document


class Prometheus:
    """A server that runs: `url` is its address."""

    def __init__(self, url: str) -> None:
        self.url = url

    async def query(self, expression: str) -> list[dict[str, Any]]:
        """Return what an expression gives just now."""
        found: list[dict[str, Any]] = (await self._get("query", query=expression))["result"]
        return found

    async def firing(self) -> set[str]:
        """Return the names of the alerts that fire."""
        alerts = (await self._get("alerts"))["alerts"]
        return {alert["labels"]["alertname"] for alert in alerts if alert["state"] == "firing"}

    async def _get(self, what: str, **parameters: str) -> dict[str, Any]:
        path = f"{self.url}/api/v1/{what}"
        async with aiohttp.ClientSession() as session, session.get(path, params=parameters) as response:
            document = await response.json()
            assert document["status"] == "success", document
            data: dict[str, Any] = document["data"]
            return data


@asynccontextmanager
async def prometheus(
    folder: Path, targets: list[str], rules: dict[str, Any] | None = None, *options: str
) -> AsyncIterator[Prometheus]:
    """Run a Prometheus that scrapes targets (`host:port`) twice a second, and evaluates rules more often. `options` are
    further ones of the command line.
    """
    program, port = required("prometheus"), free_port()
    (folder / "rules.yaml").write_text(yaml.safe_dump(rules or {"groups": []}))
    configuration = {
        "global": {"scrape_interval": "500ms", "scrape_timeout": "500ms", "evaluation_interval": "200ms"},
        "rule_files": ["rules.yaml"],
        "scrape_configs": [{"job_name": "light-scheduler", "static_configs": [{"targets": targets}]}],
    }
    (folder / "prometheus.yml").write_text(yaml.safe_dump(configuration))
    options = (f"--config.file={folder}/prometheus.yml", f"--storage.tsdb.path={folder}/data", *options)
    with (folder / "log").open("wb") as log:
        process = await asyncio.create_subprocess_exec(
            program, *options, f"--web.listen-address=127.0.0.1:{port}", stdout=log, stderr=subprocess.STDOUT
        )
    try:
        server = Prometheus(f"http://127.0.0.1:{port}")

        async def is_up() -> bool:
            assert process.returncode is None, (folder / "log").read_text()
            with contextlib.suppress(aiohttp.ClientError):
                return bool(await server.query("up"))
            return False

        await eventually(is_up, within=60.0, what="Prometheus to scrape")
        yield server
    finally:
        process.terminate()
        await process.wait()
