"""A PostgreSQL server for tests: the machine's own programs, or else those that benchmarks install."""

from __future__ import annotations

import shutil
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from types import SimpleNamespace
from typing import Any

from benchmarks.contestants.postgres import Postgres
from benchmarks.contestants.toolbox import Toolbox


@contextmanager
def running_postgres() -> Iterator[Postgres]:
    """Run a server of one's own, in a folder that goes with it."""
    # Not below pytest's folder, which is its user's alone: the server gives up root.
    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as made:
        folder = Path(made)
        folder.chmod(0o711)
        found = shutil.which("postgres")
        programs = Path(found).resolve().parent if found else Toolbox(folder / "programs").postgres
        tools: Any = SimpleNamespace(postgres=programs, python=sys.executable)
        server = Postgres(tools, folder / "server")
        try:
            yield server
        finally:
            server.close()
