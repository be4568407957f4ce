"""Keeps secrets out of the Kafka client's log, which at level DEBUG contains every request, including logins.

Also drops its warning about a password sent in clear text, which every connection would repeat: `doctor` warns of it.
"""

from __future__ import annotations

import logging
from typing import Any

from .secret import HIDDEN

_IN_THE_CLEAR = "Sending username and password in the clear"
_LOGIN = "SaslAuthenticate"


class WithoutLogins(logging.Filter):
    """Hides the content of login requests and responses."""

    def filter(self, record: logging.LogRecord) -> bool:
        if record.msg == _IN_THE_CLEAR:
            return False
        if isinstance(record.args, tuple):
            record.args = tuple(map(_hidden, record.args))
        return True


def _hidden(argument: Any) -> Any:
    name = type(argument).__name__
    return f"{name}({HIDDEN})" if name.startswith(_LOGIN) else argument


_FILTER = WithoutLogins()


def keep_logins_out_of_logs() -> None:
    """Stop aiokafka's connections from logging logins. Idempotent."""
    logging.getLogger("aiokafka.conn").addFilter(_FILTER)
