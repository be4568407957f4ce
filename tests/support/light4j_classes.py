"""light-4j's own Avro classes, from Maven Central: where they are, and a Java producer of tasks that uses them."""

from __future__ import annotations

import asyncio
import os
import shutil
from pathlib import Path

import pytest

from light_scheduler.host.jars import kafka_jars

from .pinned_jar import PinnedJar

JAR = PinnedJar(
    "net.lightapi",
    "portal-event",
    "2.1.33",
    "c18c92d95f72f562d2ae823760cabac24f7331ccd943877fe886dc88c2277013",
    Path(__file__).parents[2] / "build" / "light4j",
)
"""Where `make light4j` puts it."""
PROGRAM = Path(__file__).with_name("Light4jTasks.java")

RUN_S = 60


def required() -> str:
    """Return the class path of a program that uses the classes; skip the test where they cannot be had."""
    pyspark = pytest.importorskip("pyspark", reason="Avro and Jackson for Java come with PySpark")
    if shutil.which("javac") is None:
        pytest.skip("needs a Java compiler")
    if not JAR.path.exists():
        pytest.skip(f"{JAR.path.name} is not there: `make light4j` gets it, where there is Maven Central")
    assert JAR.is_there, f"{JAR.path} is not the jar that was pinned"
    libraries = Path(pyspark.__file__).parent / "jars" / "*"
    return os.pathsep.join(map(str, [JAR.path, *kafka_jars(), libraries]))


async def send_tasks(class_path: str, bootstrap_servers: str, registry: str, topic: str, target: str) -> None:
    """Send the tasks of the program, with schemas that it registers."""
    java = await asyncio.create_subprocess_exec(
        *("java", "-cp", class_path, PROGRAM, bootstrap_servers, registry, topic, target),
        stderr=asyncio.subprocess.PIPE,
    )
    _, complaints = await asyncio.wait_for(java.communicate(), RUN_S)
    assert java.returncode == 0, complaints.decode()
