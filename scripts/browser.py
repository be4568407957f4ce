"""Install Chromium for tests/browser, unless there is one: the system's package, or else Playwright's.

If neither is available, it says so and succeeds; the tests are then skipped with the reason.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

from playwright.sync_api import sync_playwright

sys.path.append(str(Path(__file__).resolve().parent.parent / "tests"))

from support.chromium import VARIABLE, find_chromium

TIMEOUT_S = 120
APT = (
    ["apt-get", "update", "--quiet"],
    ["apt-get", "install", "--quiet", "--yes", "--no-install-recommends", "chromium"],
)
PLAYWRIGHT = ([sys.executable, "-m", "playwright", "install", "chromium"],)


def found() -> str | None:
    """Return the path of a Chromium; None if there is none."""
    with sync_playwright() as playwright:
        return find_chromium(playwright.chromium.executable_path)


def succeed(commands: tuple[list[str], ...]) -> bool:
    """Run commands in turn. Return whether all of them succeeded."""
    try:
        for command in commands:
            subprocess.run(command, check=True, stdout=subprocess.DEVNULL, timeout=TIMEOUT_S)  # nosec B603
    except (OSError, subprocess.SubprocessError) as error:
        print(error, file=sys.stderr)
        return False
    return True


def main() -> None:
    if found() is None and shutil.which("apt-get") and os.geteuid() == 0:
        succeed(APT)
    if found() is None:
        succeed(PLAYWRIGHT)
    path = found()
    if path is None:
        print(f"No Chromium can be installed: tests/browser will be skipped. Name one in {VARIABLE}.", file=sys.stderr)
    else:
        print(f"Chromium: {path}")


if __name__ == "__main__":
    main()
