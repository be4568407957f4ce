"""Download Debian's Prometheus to build/prometheus for the tests, unless there is one. Nothing is installed or started.

If it is not available, it says so and succeeds; the tests that need it are then skipped with the reason.
"""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
from pathlib import Path

sys.path.append(str(Path(__file__).resolve().parent.parent / "tests"))

from support.prometheus import INSTALLED, find
from support.whole import whole

TIMEOUT_S = 120
PACKAGE = "prometheus"


def run(*command: str, folder: str | None = None) -> bool:
    """Run a command. Return whether it succeeded."""
    try:
        subprocess.run(command, check=True, cwd=folder, stdout=subprocess.DEVNULL, timeout=TIMEOUT_S)  # nosec B603
    except (OSError, subprocess.SubprocessError) as error:
        print(error, file=sys.stderr)
        return False
    return True


def download(folder: str) -> bool:
    # As the current user: apt's own user cannot write to the folder.
    return run("apt-get", "--option", "APT::Sandbox::User=", "download", PACKAGE, folder=folder)


def unpack() -> None:
    """Download the package and unpack it, as any user. Only root can fetch missing package lists."""
    with tempfile.TemporaryDirectory() as folder:
        got = download(folder)
        if not got and os.geteuid() == 0:
            got = run("apt-get", "update", "--quiet") and download(folder)
        if got:
            (archive,) = Path(folder).glob(f"{PACKAGE}_*.deb")
            with whole(INSTALLED.parents[1]) as made:
                run("dpkg-deb", "--extract", str(archive), str(made))


def main() -> None:
    if find("prometheus") is None or find("promtool") is None:
        unpack()
    path = find("prometheus")
    print(f"Prometheus: {path}" if path else "No Prometheus can be had: the tests that need it will be skipped.")


if __name__ == "__main__":
    main()
