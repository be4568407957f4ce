"""Where the tests in a browser find Chromium."""

from __future__ import annotations

import os
import shutil
from pathlib import Path

VARIABLE = "CHROMIUM_PATH"
NAMES = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable")


def find_chromium(own: str) -> str | None:
    """Return the path of a Chromium: the one that is named, the system's, or `own`, which Playwright installs."""
    named = os.environ.get(VARIABLE)
    if named:
        return named
    found = next(filter(None, map(shutil.which, NAMES)), None)
    return found or (own if Path(own).exists() else None)
