"""The image as a rootless builder makes it on Debian packages, and a command in a container of it."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Iterator

import pytest

from light_scheduler import __version__
from scripts.image import ROOT, missing_programs

pytestmark = [
    pytest.mark.integration,
    pytest.mark.soak,
    pytest.mark.timeout(1_800),
    pytest.mark.skipif(bool(missing_programs()), reason=f"{', '.join(missing_programs())} not found"),
]

NAME = "localhost/light-scheduler-under-test"
ENVIRONMENT = {"BUILDAH_ISOLATION": "chroot", "STORAGE_DRIVER": "vfs"} | os.environ


def run(*command: str) -> str:
    done = subprocess.run(command, check=False, env=ENVIRONMENT, capture_output=True, text=True)
    assert done.returncode == 0, done.stdout[-4_000:] + done.stderr[-4_000:]
    return done.stdout.strip()


@pytest.fixture(scope="module")
def container() -> Iterator[str]:
    run(sys.executable, str(ROOT / "scripts" / "image.py"), "--tag", NAME)
    container = run("buildah", "from", "--pull-never", NAME)
    yield container
    run("buildah", "rm", container)
    run("buildah", "rmi", NAME)


def test_the_image_says_who_it_runs_as_and_whether_it_is_well(container: str) -> None:
    image = json.loads(run("buildah", "inspect", "--type", "image", NAME))["Docker"]["config"]
    assert (image["User"], image["Entrypoint"], image["Cmd"]) == ("10001:10001", ["light-scheduler"], ["worker"])
    assert image["Healthcheck"]["Test"] == ["CMD", "python", "-m", "light_scheduler.worker_page", "/ready"]


def test_a_command_runs_in_it_as_a_user_without_rights(container: str) -> None:
    assert __version__ in run("buildah", "run", container, "--", "light-scheduler", "--version")
    assert run("buildah", "run", container, "--", "id", "-u") == "10001"
    writable = ("sh", "-c", "find / -xdev -writable -type d -not -path '/proc/*' -not -path '/tmp*' 2>/dev/null; true")
    found = run("buildah", "run", container, "--", *writable).split()
    assert "/var/lib/light-scheduler" in found
    assert [each for each in found if each.startswith(("/opt", "/usr", "/etc"))] == []
