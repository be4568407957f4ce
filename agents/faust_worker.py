"""Faust's worker process without its decoration: its output goes to the log that the settings describe."""

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
    """Writes nothing but log lines, and does not linger at its end."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **{**kwargs, "quiet": True})

    def on_setup_root_logger(self, logger: logging.Logger, level: int) -> None:  # noqa: ARG002
        """Keep the levels: Faust would set its own default, and draw a spinner between the lines."""
        self.spinner = None
        logging.captureWarnings(True)

    async def _sentinel_task(self) -> None:
        """End at once: what mode does last is to wait for a second, when all services and tasks have ended."""


def without_banner() -> None:
    """Keep `faust worker` from printing a table first. Faust has no setting for that, only its option `--quiet`."""
    worker_command.on_worker_created = _say_nothing  # type: ignore[assignment, method-assign]


@contextmanager
def without_discovery() -> Iterator[None]:
    """Keep Faust from noting which module an agent is in: it looks up the files of all modules, and nobody asks."""
    attach = discovery.attach
    discovery.attach = _note_nothing
    try:
        yield
    finally:
        discovery.attach = attach


def _note_nothing(*_: object, **__: object) -> None:
    """Take the place of a function that looks for the caller's module."""


def _say_nothing(_command: worker_command, _worker: mode.Worker) -> None:
    """Take the place of a hook that prints."""
