"""light-4j's own Avro classes, from Maven Central: where they are, and a Java producer of tasks that uses them."""

from __future__ import annotations

import asyncio
import hashlib
import os
import shutil
import subprocess
from contextlib import suppress
from pathlib import Path

import pytest

from light_scheduler.host.jars import kafka_jars

ARTIFACT = "net.lightapi:portal-event:2.1.33"
JAR = "portal-event-2.1.33.jar"
SHA256 = "c18c92d95f72f562d2ae823760cabac24f7331ccd943877fe886dc88c2277013"
FOLDER = Path(__file__).parents[2] / "build" / "light4j"
PROGRAM = Path(__file__).with_name("Light4jTasks.java")

DOWNLOAD_S = 120
RUN_S = 60


def required() -> str:
    """Return the class path of a program that uses the classes; skip the test where they cannot be had."""
    pyspark = pytest.importorskip("pyspark", reason="Avro and Jackson for Java come with PySpark")
    if shutil.which("javac") is None:
        pytest.skip("needs a Java compiler")
    jar = FOLDER / JAR
    if not jar.exists():
        _download()
    if not jar.exists():
        pytest.skip(f"{ARTIFACT} cannot be had: needs Maven, and Maven Central")
    assert hashlib.sha256(jar.read_bytes()).hexdigest() == SHA256, f"{jar} is not the jar that was pinned"
    libraries = Path(pyspark.__file__).parent / "jars" / "*"
    return os.pathsep.join(map(str, [jar, *kafka_jars(), libraries]))


def _download() -> None:
    what = (f"-Dartifact={ARTIFACT}", f"-DoutputDirectory={FOLDER}")
    copy = ("mvn", "--quiet", "--batch-mode", "dependency:copy", *what)
    with suppress(OSError, subprocess.TimeoutExpired):
        subprocess.run(copy, check=False, capture_output=True, timeout=DOWNLOAD_S)


async def send_tasks(class_path: str, bootstrap_servers: str, registry: str, topic: str, target: str) -> None:
    """Send the tasks of the program, with schemas that it registers."""
    java = await asyncio.create_subprocess_exec(
        *("java", "-cp", class_path, PROGRAM, bootstrap_servers, registry, topic, target),
        stderr=asyncio.subprocess.PIPE,
    )
    _, complaints = await asyncio.wait_for(java.communicate(), RUN_S)
    assert java.returncode == 0, complaints.decode()
