"""Requests a page from the worker that the settings describe. Blocking.

    python -m light_scheduler.worker_page /ready

uses the settings from the environment and the settings file. Exit code 1 if the worker does not answer with 200.
"""

from __future__ import annotations

import sys
from http import HTTPStatus

from light_scheduler.connection import Secret
from light_scheduler.connection.worker_connection import WorkerAddress
from light_scheduler.errors import ClientError
from light_scheduler.settings import Settings, load_settings

TIMEOUT_S = 4.0


def page_of_worker(settings: Settings, path: str, *, timeout: float, token: Secret | None = None) -> bytes | None:
    """Return a worker's answer; None if it does not answer with status 200.

    Blocks for at most `timeout` seconds at each step. Raises ConfigurationError if a certificate cannot be read.
    """
    address = WorkerAddress(settings.web_url, token, settings.http_security, timeout)
    try:
        status, page = address.exchange("GET", path)
    except ClientError:
        return None
    return page if status == HTTPStatus.OK else None


if __name__ == "__main__":
    sys.exit(page_of_worker(load_settings(), sys.argv[1], timeout=TIMEOUT_S) is None)
