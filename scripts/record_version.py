"""Archives the packages of a commit, for the tests that run workers of two versions side by side.

    python scripts/record_version.py 383987d tests/golden/versions/5.tar.xz

The archive has everything that a worker needs, without the dashboard's files, the jobs and the other programs. It is
named after the state format of this version (see `light_scheduler.wire.state_format`); `git get-tar-commit-id` prints
its commit. Archives are reproducible.
"""

from __future__ import annotations

import lzma
import subprocess
import sys
from pathlib import Path

PACKAGES = ("light_scheduler", "agents", "tables")
NOT_NEEDED = (
    "bench",
    "cli",
    "outbox",
    "pipeline",
    "testing",
    "web/static/*.css",
    "web/static/*.js",
    "web/static/*.ts",
)
"""Excluded paths within light_scheduler."""


def record(commit: str, archive: Path) -> None:
    """Write the archive of a commit. Raises CalledProcessError if there is no such commit."""
    archive.parent.mkdir(parents=True, exist_ok=True)
    archive.write_bytes(lzma.compress(tar_of(commit, Path()), preset=9 | lzma.PRESET_EXTREME))


def tar_of(commit: str, repository: Path) -> bytes:
    """Return the packages of a commit as a tar file. Raises CalledProcessError if there is no such commit."""
    paths = [*PACKAGES, *(f":(exclude,glob)light_scheduler/{path}" for path in NOT_NEEDED)]
    command = ["git", "archive", "--format=tar", commit, "--", *paths]
    tar = subprocess.run(command, check=True, cwd=repository, capture_output=True)  # nosec B603 # output is only kept
    return tar.stdout


if __name__ == "__main__":
    record(sys.argv[1], Path(sys.argv[2]))
