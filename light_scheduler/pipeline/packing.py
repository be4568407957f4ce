"""Packs everything for executors into one file: a PEX of this package and its dependencies, for this environment's
Python.

A PEX is a zip file that acts as a Python interpreter: `environment.pex -m pyspark.daemon`. Executors get Spark's own
Python package from Spark, through PYTHONPATH, so the file does not need its 400 MB.
"""

from __future__ import annotations

import importlib.util
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

from light_scheduler.errors import JobError

_REQUIREMENT = "light-scheduler[spark]"
_LEFT_OUT = ("pyspark", "py4j", "pex")
"""Packages that executors get from Spark, and the packing tool itself."""


class Packed(NamedTuple):
    """A packed environment: its size in bytes, and the version of Python that executors need."""

    path: Path
    bytes: int
    python: str


def pack(output: Path) -> Packed:
    """Pack this environment into a file. Raises JobError if that fails."""
    if importlib.util.find_spec("pex") is None:
        raise JobError("PEX is not installed: pip install 'light-scheduler[spark]'")
    if sys.prefix == sys.base_prefix:
        raise JobError(
            f"{sys.executable} does not belong to a virtual environment: install the package into one, and pack that"
        )
    ran = subprocess.run(packing(output), capture_output=True, text=True, check=False)  # nosec B603 # PEX
    if ran.returncode:
        raise JobError(f"PEX cannot pack {sys.prefix}: {(ran.stderr.strip() or ran.stdout.strip())[-2_000:]}")
    return Packed(output, output.stat().st_size, python_name())


def packing(output: Path) -> Sequence[str]:
    """Return the command that packs this environment."""
    return [
        *(sys.executable, "-m", "pex", "--venv-repository", sys.prefix, _REQUIREMENT),
        *(word for name in _LEFT_OUT for word in ("--exclude", name)),
        # The file unpacks itself once, and runs like a virtual environment that respects PYTHONPATH.
        *("--venv", "prepend", "--non-hermetic-venv-scripts"),
        *("--python-shebang", f"/usr/bin/env {python_name()}"),
        *("--no-compress", "--output-file", str(output)),
    ]


def python_name() -> str:
    """Return the name of the interpreter that runs the file: `python3.11`."""
    return f"python{sys.version_info.major}.{sys.version_info.minor}"
