"""The filter of system calls of a systemd unit: what it denies, and running a program under it."""

from __future__ import annotations

import ctypes.util
import re
import shutil
import subprocess
import sys
from collections.abc import Iterable

CONFINED = """
import ctypes, errno, os, sys

ALLOW, ERRNO = 0x7FFF0000, 0x00050000
seccomp = ctypes.CDLL(sys.argv[1])
seccomp.seccomp_init.restype = ctypes.c_void_p
context = ctypes.c_void_p(seccomp.seccomp_init(ALLOW))
for name in sys.argv[2].split(","):
    number = seccomp.seccomp_syscall_resolve_name(name.encode())
    if number >= 0:
        assert seccomp.seccomp_rule_add(context, ERRNO | errno.EPERM, number, 0) == 0, name
assert seccomp.seccomp_load(context) == 0
os.execv(sys.executable, [sys.executable, *sys.argv[3:]])
"""


def can_confine() -> bool:
    """Whether this machine has what a filter is read and set up with; both come with systemd."""
    return shutil.which("systemd-analyze") is not None and ctypes.util.find_library("seccomp") is not None


def denied_calls(unit: str) -> set[str]:
    """Return the known system calls that a unit denies. Its first line of the filter is a list of allowed ones."""
    allowed: set[str] = set()
    for words in re.findall(r"^SystemCallFilter=(.*)$", unit, re.MULTILINE):
        named = _expanded(words.removeprefix("~").split())
        allowed = allowed - named if words.startswith("~") else allowed | named
    return _expanded(["@known"]) - allowed


def confined(denied: Iterable[str], *arguments: str) -> list[str]:
    """Return the command that runs this Python with these arguments and without some system calls (EPERM)."""
    library = ctypes.util.find_library("seccomp") or ""
    return [sys.executable, "-c", CONFINED, library, ",".join(sorted(denied)), *arguments]


def _expanded(names: Iterable[str]) -> set[str]:
    calls: set[str] = set()
    for name in names:
        if name.startswith("@"):
            listed = subprocess.run(
                ["systemd-analyze", "syscall-filter", name], check=True, capture_output=True, text=True
            ).stdout
            calls |= _expanded(re.findall(r"^ +([@\w-]+)$", listed, re.MULTILINE))
        else:
            calls.add(name)
    return calls
