"""The first firings on a broker that has never seen the application, nor anything else."""

from __future__ import annotations

import asyncio
import json
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from support.application import Application
from support.reading import read_until

from light_scheduler.devkit import EmbeddedBroker

pytestmark = pytest.mark.integration


ONLY_LOOPBACK = """
import fcntl, socket, struct
SIOCSIFFLAGS, IFF_UP = 0x8914, 0x1
with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as any_socket:
    fcntl.ioctl(any_socket, SIOCSIFFLAGS, struct.pack("16sh", b"lo", IFF_UP))

from light_scheduler.devkit import EmbeddedBroker
from light_scheduler.settings import load_settings
from light_scheduler.kafka.topic_admin import create_topics

with EmbeddedBroker() as broker:
    print(len(create_topics(load_settings({"broker": broker.bootstrap_servers}, environment={})).created), "topics")
"""
OWN_NETWORK = ("unshare", "--map-root-user", "--net")


def may_have_an_own_network() -> bool:
    program = shutil.which(OWN_NETWORK[0])
    return (
        program is not None and subprocess.run([*OWN_NETWORK, "true"], capture_output=True, check=False).returncode == 0
    )


@pytest.mark.skipif(not may_have_an_own_network(), reason="needs the right to make network namespaces")
@pytest.mark.soak
def test_a_machine_without_a_network_has_broker_and_topics(tmp_path: Path) -> None:
    ran = subprocess.run(
        [*OWN_NETWORK, sys.executable, "-c", ONLY_LOOPBACK],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        check=False,
    )
    assert ran.returncode == 0, ran.stderr
    assert ran.stdout.endswith(" topics\n")


@pytest.mark.soak
async def test_the_first_firings_to_new_topics_are_on_time(tmp_path: Path) -> None:
    with EmbeddedBroker() as broker:
        application = await Application.create(broker.bootstrap_servers, tmp_path)
        try:
            worker = await application.start_worker(log_format="json")
            targets = [f"new-{number}" for number in range(3)]
            for target in targets:
                await application.create_topic(target)
            async with application.client() as client:
                for target in targets:
                    await client.schedule_many(
                        ({"id": f"{target}-{number}", "topic": target, "after": 300} for number in range(8)), wait=True
                    )
                    await read_until(broker.bootstrap_servers, [target], lambda records: len(records) >= 8)
            info = await worker.shows(lambda info: sum(lane["firings"] for lane in info["lanes"]) >= 24)
            lanes = info["lanes"]
            await worker.end()
        finally:
            await asyncio.to_thread(application.close)

    assert sum(lane["firings"] for lane in lanes) == 24
    assert sum(lane["restarts"] for lane in lanes) == 0
    assert max(lane["lateness"]["max_ms"] for lane in lanes) < 5_000

    logged = [json.loads(line) for line in worker.log.read_text().splitlines()]
    assert [line for line in logged if line["level"] not in ("DEBUG", "INFO")] == []
    assert {line["logger"].partition(".")[0] for line in logged} == {"light_scheduler"}
    assert "[^" not in worker.log.read_text(), "how the framework writes of its services"
