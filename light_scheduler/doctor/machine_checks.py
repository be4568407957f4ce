"""Checks of the machine: Python, Java, disk, the HTTP port and the clock."""

from __future__ import annotations

import ctypes
import platform
import shutil
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

from light_scheduler.errors import BrokerStartError
from light_scheduler.host.java import java_executable
from light_scheduler.host.ports import port_is_free
from light_scheduler.settings import Settings
from light_scheduler.worker_page import page_of_worker

from .check import Check, Status
from .worker_checks import ANSWER_S

_MIB = 1024 * 1024
_LITTLE_DISK = 1024 * _MIB
_NO_DISK = 100 * _MIB

_UNSYNCHRONISED = 0x0040  # STA_UNSYNC of linux/timex.h
_TIMEX_BYTES = 256  # struct timex has 208
_TIMEX_MAXERROR_OFFSET = 24
_TIMEX_STATUS_OFFSET = 40


def check_python() -> Check:
    return Check("python", "ok", f"{platform.python_version()} ({sys.executable})")


def check_java() -> Check:
    """Check for Java. Only the embedded broker needs it, so its absence is not a failure."""
    try:
        java = java_executable()
    except BrokerStartError as error:
        return Check("java", "warn", "not installed; only `broker` and `up` need it", str(error))
    return Check("java", "ok", str(java))


def check_disk(folder: Path) -> Iterator[Check]:
    """Check the data folder, or the place where it will be created."""
    whole = existing = folder.absolute()
    try:
        existing = next(place for place in (whole, *whole.parents) if place.exists())
        with tempfile.TemporaryFile(dir=existing):
            pass
    except OSError as error:
        fix = "allow this user to write there, or choose another folder with --data-dir"
        yield Check("data folder", "fail", f"{existing} cannot be written: {error.strerror}", fix)
        return
    yield Check("data folder", "ok", f"{whole} can be {'written' if existing == whole else 'created'}")
    free = shutil.disk_usage(existing).free
    detail = f"{free / _MIB / 1024:,.1f} GiB free"
    status: Status = "fail" if free < _NO_DISK else "warn" if free < _LITTLE_DISK else "ok"
    yield Check(
        "disk", status, detail, None if status == "ok" else "free some space, or choose another folder with --data-dir"
    )


def check_web_port(settings: Settings) -> Check:
    """Check the web port. If a worker uses it, that is fine."""
    address = f"{settings.web_host}:{settings.web_port}"
    if port_is_free(settings.web_port, settings.web_host):
        return Check("web port", "ok", f"{address} is free")
    if page_of_worker(settings, "/live", timeout=ANSWER_S) is not None:
        return Check("web port", "ok", f"a worker answers on {address}")
    return Check("web port", "fail", f"{address} is in use by another program", "choose another port with --web-port")


def check_clock() -> Check:
    """Ask the kernel whether its clock is synchronised. The broker's clock cannot be read without writing."""
    if sys.platform != "linux":
        return Check("clock", "ok", "not checked on this system")
    timex = ctypes.create_string_buffer(_TIMEX_BYTES)
    if ctypes.CDLL(None, use_errno=True).adjtimex(timex) < 0:
        return Check("clock", "warn", "the kernel does not say whether its clock is synchronised", "run an NTP client")
    status = int.from_bytes(timex.raw[_TIMEX_STATUS_OFFSET : _TIMEX_STATUS_OFFSET + 4], sys.byteorder)
    if status & _UNSYNCHRONISED:
        fix = "run an NTP client (chrony, systemd-timesyncd): workers fire by this clock"
        return Check("clock", "warn", "the kernel says that nothing synchronises its clock", fix)
    bound = int.from_bytes(timex.raw[_TIMEX_MAXERROR_OFFSET : _TIMEX_MAXERROR_OFFSET + 8], sys.byteorder)
    return Check("clock", "ok", f"synchronised, maximum error {bound / 1_000:,.0f} ms")
