"""Dialects by name. A dialect is imported when it is first used, since some need additional packages."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache

from light_scheduler.errors import ConfigurationError
from light_scheduler.wire.dialect import Dialect
from light_scheduler.wire.fields import closest
from light_scheduler.wire.schemas import Schemas


def dialect_named(name: str, schemas: Schemas | None = None) -> Dialect:
    """Return the dialect with a name. `schemas` are the known schemas of the registry; None if there is no registry.

    Raises ConfigurationError for `commands_topics` if the dialect is unknown, or a package for it is missing.
    """
    make = _DIALECTS.get(name)
    if make is None:
        near = closest(name, _DIALECTS)
        raise ConfigurationError(
            "commands_topics", f"dialect {name!r} is unknown{near}; use one of {', '.join(_DIALECTS)}"
        )
    return make(schemas)


def _native(_schemas: Schemas | None) -> Dialect:
    from light_scheduler.wire.native import NATIVE

    return NATIVE


def _json(_schemas: Schemas | None) -> Dialect:
    from light_scheduler.wire.json_commands import JSON

    return JSON


def _karafka(_schemas: Schemas | None) -> Dialect:
    from .karafka import KARAFKA

    return KARAFKA


def _etf1(_schemas: Schemas | None) -> Dialect:
    from .etf1 import ETF1

    return ETF1


@cache
def _skyuk(schemas: Schemas | None) -> Dialect:
    from .skyuk import SkyUkDialect

    return SkyUkDialect(schemas)


@cache
def _light4j(schemas: Schemas | None) -> Dialect:
    from .light4j import Light4jDialect

    return Light4jDialect(schemas)


_DIALECTS: dict[str, Callable[[Schemas | None], Dialect]] = {
    "native": _native,
    "json": _json,
    "karafka": _karafka,
    "etf1": _etf1,
    "skyuk": _skyuk,
    "light4j": _light4j,
}
