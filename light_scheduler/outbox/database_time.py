"""The time by the clock of the database: the one clock that all relays share, so none has to be right itself."""

from __future__ import annotations

from typing import Any

from sqlalchemy import BigInteger
from sqlalchemy.ext.compiler import compiles
from sqlalchemy.sql.functions import FunctionElement

_TEXTS = {
    # Its CURRENT_TIMESTAMP is when the transaction began: that may have waited for locks since.
    "postgresql": "CAST(FLOOR(EXTRACT(EPOCH FROM CLOCK_TIMESTAMP()) * 1000) AS BIGINT)",
    "sqlite": "CAST(ROUND((JULIANDAY('now') - 2440587.5) * 86400000) AS INTEGER)",
}
SUPPORTED = frozenset(_TEXTS)
"""The dialects of SQLAlchemy for which the expression is known."""


class DatabaseTime(FunctionElement[int]):
    """An SQL expression: the time in UTC epoch ms when the statement runs. SQLite has the clock of its machine."""

    type = BigInteger()
    inherit_cache = True


@compiles(DatabaseTime)
def _sql(_: DatabaseTime, compiler: Any, **__: Any) -> str:
    return _TEXTS[compiler.dialect.name]
