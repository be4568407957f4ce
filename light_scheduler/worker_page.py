"""One page of the worker that settings describe, for those who wait for it anyway.

    python -m light_scheduler.worker_page /ready

asks the worker of the settings in the environment and the settings file; exit code 1: it does not answer with 200.
"""

from __future__ import annotations

import sys
from collections.abc import Mapping

from light_scheduler.host.page import page_of
from light_scheduler.settings import Settings, load_settings

TIMEOUT_S = 4.0


def page_of_worker(
    settings: Settings, path: str, *, timeout: float, headers: Mapping[str, str] | None = None
) -> bytes | None:
    """Return what a worker answers; None if it does not, or with another status than 200.

    Blocks for at most `timeout` seconds at each step. Raises ConfigurationError if a certificate cannot be read.
    """
    context = None
    if settings.web_ssl_certificate is not None:
        from light_scheduler.connection.http_tls import client_context

        context = client_context(settings.http_security)
    return page_of(settings.web_host, settings.web_port, path, timeout=timeout, headers=headers, context=context)


if __name__ == "__main__":
    sys.exit(page_of_worker(load_settings(), sys.argv[1], timeout=TIMEOUT_S) is None)
