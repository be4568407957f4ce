"""Commands without a broker or a worker: they say so soon and in plain words, and Ctrl-C ends them at once."""

from __future__ import annotations

import signal
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager

import pytest

from light_scheduler.host.ports import free_port

OF_THE_BROKER = [
    ["topics", "check"],
    ["topics", "create"],
    ["topics", "grow", "--partitions", "2"],
    ["schedule", "--target-topic", "t"],
    ["schedule", "--id", "a", "--after", "1m", "--tenant", "shop"],
    ["cancel", "a"],
    ["watch"],
]
OF_A_WORKER = [["list"], ["get", "a"], ["delays", "list"]]
ROUNDS = 3
PROGRAM = [sys.executable, "-c", "from light_scheduler.cli import main; main()"]


def at(address: str, arguments: list[str]) -> list[str]:
    option = ["--url", f"http://{address}"] if arguments in OF_A_WORKER else ["--broker", address]
    return [*PROGRAM, *arguments, *option]


def run(arguments: list[str]) -> tuple[subprocess.CompletedProcess[str], float]:
    """Run a program to its end; return what it printed, and how many seconds it took."""
    began = time.monotonic()
    ran = subprocess.run(arguments, capture_output=True, text=True, check=False)
    return ran, time.monotonic() - began


def least_within(most_s: float, measure: Callable[[], float]) -> bool:
    """Return whether one of some rounds takes less (s): what else the machine does makes each longer, never shorter."""
    return any(measure() < most_s for _ in range(ROUNDS))


@pytest.mark.parametrize("arguments", [*OF_THE_BROKER, *OF_A_WORKER], ids=" ".join)
def test_where_nothing_listens_a_command_says_soon_what_to_do(arguments: list[str]) -> None:
    address = f"127.0.0.1:{free_port()}"
    assert least_within(5, lambda: answered(address, arguments))


def answered(address: str, arguments: list[str]) -> float:
    """Check what a command says where nothing listens; return what it took (s) but for its start."""
    _, start = run([*PROGRAM, *arguments, "--help"])  # which depends on how busy the machine is
    ran, took = run(at(address, arguments))
    assert (ran.returncode, ran.stdout) == (1, "")
    assert "Error: cannot reach" in ran.stderr
    assert address in ran.stderr
    assert "`light-scheduler up`" in ran.stderr
    assert len(ran.stderr.splitlines()) == 1
    return took - start


@contextmanager
def silent_server() -> Iterator[socket.socket]:
    """Listen and never answer, as a host does that hangs."""
    with socket.create_server(("127.0.0.1", 0)) as server:
        server.settimeout(60)
        yield server


@pytest.mark.parametrize("arguments", [*OF_THE_BROKER, ["doctor"], *OF_A_WORKER], ids=" ".join)
def test_ctrl_c_ends_a_command_at_once(arguments: list[str]) -> None:
    assert least_within(2, lambda: interrupted(arguments)), "sooner than any time-out of a client"


def interrupted(arguments: list[str]) -> float:
    """Interrupt a command that waits; return how long (s) it then went on."""
    with silent_server() as server:
        address = f"127.0.0.1:{server.getsockname()[1]}"
        process = subprocess.Popen(at(address, arguments), stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        with server.accept()[0]:
            process.send_signal(signal.SIGINT)
            began = time.monotonic()
            _, errors = process.communicate(timeout=60)
            took = time.monotonic() - began
    assert process.returncode in ((0,) if arguments == ["watch"] else (1, 130))
    assert "Traceback" not in errors
    return took
