"""Build the image with buildah on a base of Debian packages, without a container engine or an image registry.

Needs buildah and mmdebstrap; without root, also uidmap, and a range of ids in /etc/subuid and /etc/subgid. All are
Debian packages. Python packages come from the index that pip on this machine uses. In a container, set
BUILDAH_ISOLATION=chroot, and STORAGE_DRIVER=vfs where overlays cannot be mounted.
"""

from __future__ import annotations

import argparse
import os
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
SUITE = "bookworm"
PACKAGES = "python3,python3-pip,python3-venv,python-is-python3,ca-certificates"
BASE = "localhost/light-scheduler-base"
SHARED = ("/etc/pip.conf", "/etc/ssl/certs")
"""pip's configuration and trusted certificates. They are visible during the build, but not part of the image."""


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--tag", default="light-scheduler", help="Name of the image. [%(default)s]")
    options = parser.parse_args()
    if absent := missing_programs():
        sys.exit(f"{', '.join(absent)} not found: apt-get install buildah mmdebstrap uidmap")
    with tempfile.TemporaryDirectory() as folder:
        make_base(Path(folder))
        run("buildah", "build", "--tag", BASE, folder)
    shared = [f"--volume={path}:{path}:ro" for path in SHARED if Path(path).exists()]
    pull = ("--pull-never", f"--build-arg=PYTHON_IMAGE={BASE}")
    run("buildah", "build", "--format", "docker", *shared, *pull, "--tag", options.tag, str(ROOT))


def missing_programs() -> list[str]:
    """Return the missing programs that a build needs."""
    needed = ["buildah", "mmdebstrap"] if os.geteuid() == 0 else ["buildah", "mmdebstrap", "newuidmap"]
    return [program for program in needed if shutil.which(program) is None]


def make_base(folder: Path) -> None:
    """Write an image with only Debian's Python, as a file system and a Dockerfile."""
    run("mmdebstrap", "--variant=minbase", f"--include={PACKAGES}", SUITE, str(folder / "base.tar"))
    (folder / "Dockerfile").write_text("FROM scratch\nADD base.tar /\n", encoding="utf-8")


def run(*command: str) -> None:
    subprocess.run(command, check=True)  # nosec B603 # programs of Debian


if __name__ == "__main__":
    main()
