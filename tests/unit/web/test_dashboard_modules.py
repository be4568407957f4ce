"""The unit tests of the dashboard's modules that need no browser (tests/dashboard), run by Deno."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

from deno import find_deno_bin

ROOT = Path(__file__).parents[3]


def deno(*words: str, cache: Path) -> None:
    """Run Deno without a network; it must succeed."""
    environment = {**os.environ, "DENO_DIR": str(cache), "NO_COLOR": "1", "DENO_NO_UPDATE_CHECK": "1"}
    done = subprocess.run(
        [find_deno_bin(), *words], check=False, cwd=ROOT, env=environment, capture_output=True, text=True
    )
    assert done.returncode == 0, done.stdout + done.stderr


def test_the_unit_tests_of_the_dashboard_pass(tmp_path: Path) -> None:
    deno("test", "--no-check", "--no-remote", "--no-prompt", "tests/dashboard", cache=tmp_path)
