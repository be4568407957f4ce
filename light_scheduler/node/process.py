"""A worker process of a node, started by `supervisor`.

    python -m light_scheduler.node.process

Standard input: one line, the job. When it ends, the supervisor is gone: the process stops cleanly, or is killed after
`STOP_TIMEOUT_S`. Logs go to standard error. Exit codes are those of `light-scheduler worker`, or `WRONG_SETTINGS` and
`CANNOT_RUN` if the next start would fail in the same way.
"""

from __future__ import annotations

import os
import signal
import socket
import sys
import time
from typing import Any

from light_scheduler.errors import BrokerRefused, ConfigurationError, FormatError, StateForeign
from light_scheduler.host.collector import paused
from light_scheduler.host.parent import when_parent_ends

from .job import CANNOT_RUN, STOP_TIMEOUT_S, WRONG_SETTINGS, decoded


def main() -> None:
    """Run a worker, and exit with its exit code."""
    job = decoded(sys.stdin.buffer.readline())
    when_parent_ends(_end_in_order)
    with paused():
        from light_scheduler.application import build

        app = build(
            job.settings.from_origins(job.origins),
            process=job.process,
            shared=[socket.socket(fileno=each) for each in job.sockets],
        )
    sys.argv[:] = ["light-scheduler", "worker"]  # Faust's own command line reads this very list
    try:
        app.main()
    except SystemExit as end:
        sys.exit(_exit_code(app.ended_by, end.code))


def _exit_code(error: BaseException | None, otherwise: Any) -> Any:
    if isinstance(error, ConfigurationError):
        return WRONG_SETTINGS
    return CANNOT_RUN if isinstance(error, BrokerRefused | FormatError | StateForeign) else otherwise


def _end_in_order() -> None:
    os.kill(os.getpid(), signal.SIGTERM)
    time.sleep(STOP_TIMEOUT_S)
    os._exit(1)


if __name__ == "__main__":
    main()
