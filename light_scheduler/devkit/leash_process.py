"""The process between a parent and its child: it outlives a parent that is killed just long enough to end the child.

`leash.Leash` runs it as a script that only uses the standard library:

    leash_process.py <status fd> <grace seconds> <folder to remove when orphaned, or ""> <command> [<argument> ...]

    parent ── control pipe (stdin) ──> this process ── signals ──> child
           <──── status pipe ────────

Control pipe: each byte is the number of a signal to pass on. Its end means that the parent is gone: the child gets
SIGTERM, and SIGKILL after the grace. Status pipe: one line, `started <pid>` or `failed <reason>`. Exit: like the child,
with its exit code or by its signal.
"""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import sys
import threading
from contextlib import suppress
from types import FrameType

_PR_SET_PDEATHSIG = 1  # linux/prctl.h
_CANNOT_EXECUTE = 126


def main(arguments: list[str]) -> None:
    status_fd, grace, folder, command = int(arguments[0]), float(arguments[1]), arguments[2], arguments[3:]
    try:
        child = subprocess.Popen(  # nosec B603 # the one that it was started for
            command,
            stdin=subprocess.DEVNULL,
            process_group=0,
            preexec_fn=_die_with_leash if sys.platform == "linux" else None,  # noqa: PLW1509 - one thread so far
        )
    except OSError as error:
        os.write(status_fd, f"failed {error}\n".encode())
        sys.exit(_CANNOT_EXECUTE)

    def pass_on(signal_number: int, _frame: FrameType | None) -> None:
        child.send_signal(signal_number)

    for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
        signal.signal(number, pass_on)
    with suppress(BrokenPipeError):  # the parent is gone already: the child is ended below
        os.write(status_fd, f"started {child.pid}\n".encode())
    os.close(status_fd)
    ended = threading.Event()
    follower = threading.Thread(target=_follow, args=(child, ended, grace, folder), daemon=True)
    follower.start()
    return_code = child.wait()
    ended.set()
    _signal_group(child.pid, signal.SIGKILL)  # remaining processes that the child has started
    if _orphaned.is_set():
        follower.join()
    _exit_as(return_code)


_orphaned = threading.Event()


def _follow(child: subprocess.Popen[bytes], ended: threading.Event, grace: float, folder: str) -> None:
    while orders := os.read(0, 64):
        for signal_number in orders:
            if not ended.is_set():
                child.send_signal(signal_number)
    if not ended.is_set():
        _orphaned.set()
        child.send_signal(signal.SIGCONT)
        child.send_signal(signal.SIGTERM)
        if not ended.wait(grace):
            _signal_group(child.pid, signal.SIGKILL)
            ended.wait(grace)
    if folder:
        shutil.rmtree(folder, ignore_errors=True)


def _signal_group(process_group: int, signal_number: int) -> None:
    with suppress(ProcessLookupError, PermissionError):
        os.killpg(process_group, signal_number)


def _die_with_leash() -> None:
    """Make the kernel kill the child if this process itself is killed (Linux)."""
    import ctypes

    ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)


def _exit_as(return_code: int) -> None:
    if return_code < 0:
        with suppress(OSError, ValueError):
            signal.signal(-return_code, signal.SIG_DFL)
        os.kill(os.getpid(), -return_code)
    os._exit(return_code if return_code >= 0 else 128 - return_code)


if __name__ == "__main__":
    main(sys.argv[1:])
