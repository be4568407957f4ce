"""Refuses secrets in options: every user of the machine can read them (`ps`)."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import TypeVar

import click
from click.core import ParameterSource

from light_scheduler.connection.urls import has_password

T = TypeVar("T")

Callback = Callable[[click.Context, click.Parameter, T], T]

_SECRET_NAME = re.compile(
    r"(secret|password|passphrase|token|(access|secret)[._-]?key|jaas\.config|(ssl|keystore|private)\.key(\.pem)?)$",
    re.IGNORECASE,
)
"""Names of properties of Kafka clients, Spark and Hadoop whose values are secrets."""

_AZURE_SECRET_NAME = re.compile(
    r"\bfs\.azure\."
    r"(account\.(key|oauth2\.(client\.secret|user\.password|refresh\.token(?!\.endpoint)))(\.|$)"
    r"|sas\.(?!(token\.(provider|renew)|expiry)\.)"
    r"|(.*\.)?client-provided-(encryption-)?key(\.|$))",
    re.IGNORECASE,
)
"""The same for Hadoop's connectors to Azure, whose names can end with an account. `fs.azure.sas.` is followed by
`fixed.token`, by a container and its account, or by a setting that is not a secret."""


def no_password_in_url(instead: str) -> Callback[str | None]:
    """Return a callback that refuses a URL with a password as an option. `instead` says where to put it."""

    def check(ctx: click.Context, param: click.Parameter, url: str | None) -> str | None:
        if url is not None and _is_typed(ctx, param) and has_password(url):
            raise click.BadParameter(f"{_reason('a password')}: {instead}", ctx, param)
        return url

    return check


def no_secret_property(instead: str) -> Callback[tuple[tuple[str, str], ...]]:
    """Return a callback that refuses properties whose names are those of secrets."""

    def check(
        ctx: click.Context, param: click.Parameter, properties: tuple[tuple[str, str], ...]
    ) -> tuple[tuple[str, str], ...]:
        for name, _ in properties:
            if _SECRET_NAME.search(name) or _AZURE_SECRET_NAME.search(name):
                raise click.BadParameter(f"{_reason(name)}: {instead}", ctx, param)
        return properties

    return check


def _is_typed(ctx: click.Context, param: click.Parameter) -> bool:
    return param.name is not None and ctx.get_parameter_source(param.name) is ParameterSource.COMMANDLINE


def _reason(what: str) -> str:
    return f"every user of this machine can read {what} in an option (ps)"
