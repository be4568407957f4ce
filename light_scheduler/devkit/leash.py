"""Child processes that cannot outlive their parent, even if it is killed with SIGKILL."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from types import TracebackType
from typing import IO, NamedTuple, Self

_LEASH_PROCESS = Path(__file__).with_name("leash_process.py")
_KILL_WAIT_SECONDS = 10.0


class WhenOrphaned(NamedTuple):
    """How the command ends when the process that holds the leash dies: SIGTERM, and SIGKILL after `grace` seconds.

    Then the folder `remove` is deleted, since its owner is gone.
    """

    grace: float = 10.0
    remove: Path | None = None


ENDED_IN_ORDER = WhenOrphaned()


class Leash:
    """A running command on a leash: a tiny process between this one and the command ends the command when this one is
    gone.

    The command runs in its own session (Ctrl-C in the terminal does not reach it), with an empty standard input.
    `held_files` stay open until the command has ended, even if this process ends first: with `flock` they show that it
    runs. `output` is an open file for standard output and error, or None to inherit both. Raises OSError if the command
    cannot be started.
    """

    def __init__(
        self,
        command: Sequence[str | Path],
        *,
        environment: Mapping[str, str] | None = None,
        folder: Path | None = None,
        output: IO[bytes] | None = None,
        when_orphaned: WhenOrphaned = ENDED_IN_ORDER,
        held_files: Sequence[IO[bytes]] = (),
    ) -> None:
        status_reader, status_writer = os.pipe()
        try:
            self._process = subprocess.Popen(  # nosec B603 # a program that the caller names
                [
                    sys.executable,
                    "-IS",
                    str(_LEASH_PROCESS),
                    str(status_writer),
                    str(when_orphaned.grace),
                    str(when_orphaned.remove.absolute()) if when_orphaned.remove else "",
                    *(str(word) for word in command),
                ],
                stdin=subprocess.PIPE,
                stdout=output,
                stderr=output,
                env=environment,
                cwd=folder,
                pass_fds=(status_writer, *(file.fileno() for file in held_files)),
                start_new_session=True,
                bufsize=0,
            )
        except BaseException:
            os.close(status_reader)
            raise
        finally:
            os.close(status_writer)
        with open(status_reader, encoding="utf-8", errors="replace") as status:  # noqa: PTH123 - a descriptor
            word, _, rest = status.readline().strip().partition(" ")
        if word != "started":
            self.wait()
            raise OSError(rest or f"{command[0]} could not be started")
        self.pid = int(rest)
        """The command's own process id."""

    def poll(self) -> int | None:
        """Return the command's exit code (minus the signal number if a signal ended it), or None while it runs."""
        return_code = self._process.poll()
        if return_code is not None:
            self._close_control()
        return return_code

    def wait(self, timeout: float | None = None) -> int:
        """Wait until the command has ended. Returns like `poll`. Raises TimeoutError after `timeout` seconds."""
        try:
            return_code = self._process.wait(timeout)
        except subprocess.TimeoutExpired as error:
            raise TimeoutError(f"process {self.pid} has not ended within {timeout:g} s") from error
        self._close_control()
        return return_code

    def send_signal(self, signal_number: int) -> None:
        """Send the command a signal; does nothing if it has ended. Signals keep their order."""
        assert self._process.stdin is not None
        if self.poll() is None:
            with suppress(BrokenPipeError):
                self._process.stdin.write(bytes([signal_number]))

    def stop(self, timeout: float = 10.0) -> int:
        """Ask the command to end (SIGTERM), and kill it after `timeout` seconds. Returns like `poll`."""
        self.send_signal(signal.SIGTERM)
        try:
            return self.wait(timeout)
        except TimeoutError:
            return self.kill()

    def kill(self) -> int:
        """Kill the command with SIGKILL. Returns like `poll`."""
        self.send_signal(signal.SIGKILL)
        return self.wait(_KILL_WAIT_SECONDS)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self.stop()

    def _close_control(self) -> None:
        assert self._process.stdin is not None
        self._process.stdin.close()
