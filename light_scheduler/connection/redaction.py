"""Keeps secrets out of the Kafka client's log: at level DEBUG it logs every request, logins included.

Also drops its warning of a password sent in clear text, which would come with every connection: `doctor` warns of it.
"""

from __future__ import annotations

import logging
from typing import Any

from .secret import HIDDEN

_IN_THE_CLEAR = "Sending username and password in the clear"
_LOGIN = "SaslAuthenticate"


class WithoutLogins(logging.Filter):
    """Hides the content of requests and responses that log in."""

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
    """Have aiokafka's connections log no logins; calling it again changes nothing."""
    logging.getLogger("aiokafka.conn").addFilter(_FILTER)
