"""Helm: where it is."""

from __future__ import annotations

import shutil
from pathlib import Path

VERSION = "v3.18.6"
"""What a chart renders to can depend on it."""

BUILT = Path(__file__).parents[2] / "build" / "helm" / VERSION / "helm"
"""Where `make helm` puts it."""


def find() -> str | None:
    """Return the path of a Helm: the one that was built, or one that is installed."""
    return str(BUILT) if BUILT.exists() else shutil.which("helm")
