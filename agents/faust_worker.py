"""Faust's worker process without its banner and spinner. All output goes to the log configured in the settings."""

from __future__ import annotations

import logging
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import faust
import mode
from faust.cli.worker import worker as worker_command
from faust.utils import venusian as discovery


class PlainWorker(faust.Worker):
    """Writes only log lines, and exits without delay."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **{**kwargs, "quiet": True})

    def on_setup_root_logger(self, logger: logging.Logger, level: int) -> None:  # noqa: ARG002
        """Keep the log levels. Faust would set its own default, and draw a spinner between the lines."""
        self.spinner = None
        logging.captureWarnings(True)

    async def _sentinel_task(self) -> None:
        """Return immediately. mode would wait for a second after all services and tasks have ended."""


def without_banner() -> None:
    """Keep `faust worker` from printing its banner. Faust has no setting for that, only the option `--quiet`."""
    worker_command.on_worker_created = _say_nothing  # type: ignore[assignment, method-assign]


@contextmanager
def without_discovery() -> Iterator[None]:
    """Keep Faust from recording the module of an agent. It would inspect the files of all modules, for no use here."""
    attach = discovery.attach
    discovery.attach = _note_nothing
    try:
        yield
    finally:
        discovery.attach = attach


def _note_nothing(*_: object, **__: object) -> None:
    """Replace the function that looks for the caller's module."""


def _say_nothing(_command: worker_command, _worker: mode.Worker) -> None:
    """Replace the hook that prints the banner."""
