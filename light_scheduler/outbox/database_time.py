"""The time of the database's clock, which all relays share, so that their own clocks need not be right."""

from __future__ import annotations

from typing import Any

from sqlalchemy import BigInteger
from sqlalchemy.ext.compiler import compiles
from sqlalchemy.sql.functions import FunctionElement

_TEXTS = {
    # Its CURRENT_TIMESTAMP is the start of the transaction, which may have waited for locks since.
    "postgresql": "CAST(FLOOR(EXTRACT(EPOCH FROM CLOCK_TIMESTAMP()) * 1000) AS BIGINT)",
    "sqlite": "CAST(ROUND((JULIANDAY('now') - 2440587.5) * 86400000) AS INTEGER)",
}
SUPPORTED = frozenset(_TEXTS)
"""The dialects of SQLAlchemy with a known expression."""


class DatabaseTime(FunctionElement[int]):
    """An SQL expression: the time in UTC epoch ms when the statement runs. SQLite uses its machine's clock."""

    type = BigInteger()
    inherit_cache = True


@compiles(DatabaseTime)
def _sql(_: DatabaseTime, compiler: Any, **__: Any) -> str:
    return _TEXTS[compiler.dialect.name]
