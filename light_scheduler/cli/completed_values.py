"""Shell completion of ids and tenants, with values from a worker.

Pressing Tab must neither fail nor wait: values that are not found in time are not suggested.
"""

from __future__ import annotations

import asyncio
import os
import re
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import fields
from typing import TYPE_CHECKING, Any

import click

from light_scheduler.model import DEFAULT_TENANT
from light_scheduler.settings import ENVIRONMENT_PREFIX, Settings, load_settings

from .context import settings_of_context, url_of_context, value_of_context

if TYPE_CHECKING:
    from light_scheduler.web.schedule_client import ScheduleReader

TIMEOUT_S = 1.0
MOST = 50
_HARMLESS = re.compile(r"\w[\w@%+=:./-]*")
"""Characters that no shell interprets. Bash inserts suggestions without quotes, and anyone who sends commands chooses
ids: an id with `$()` would be executed. Fish cuts suggestions at a comma."""

_SETTINGS = frozenset(setting.name for setting in fields(Settings))

Suggest = Callable[["ScheduleReader", click.Context, str], Awaitable[Sequence[str]]]


def schedule_ids(ctx: click.Context, _param: click.Parameter, incomplete: str) -> list[str]:
    """Return ids of pending schedules that begin with the typed text."""
    return _asked(_ids, ctx, incomplete)


def tenants(ctx: click.Context, _param: click.Parameter, incomplete: str) -> list[str]:
    """Return names of tenants that begin with the typed text: tenants of the token, or tenants with rules."""
    return [name for name in _asked(_tenants, ctx, incomplete) if name.startswith(incomplete)]


async def _ids(reader: ScheduleReader, ctx: click.Context, incomplete: str) -> Sequence[str]:
    page = await reader.list(_given(ctx, "tenant") or DEFAULT_TENANT, {"id_prefix": incomplete}, MOST)
    return [schedule.id for schedule in page.schedules]


async def _tenants(reader: ScheduleReader, _ctx: click.Context, _incomplete: str) -> Sequence[str]:
    import msgspec

    from light_scheduler.web.tenant_documents import TenantList

    if (own := (await reader.identity()).tenants) is not None:
        return own
    _, listed = await reader.ask("GET", "/api/v1/tenants")
    ruled = {tenant.name for tenant in msgspec.json.decode(listed, type=TenantList).tenants}
    return sorted({DEFAULT_TENANT, *ruled})


def _asked(suggest: Suggest, ctx: click.Context, incomplete: str) -> list[str]:
    try:
        return [value for value in asyncio.run(_answer(suggest, ctx, incomplete)) if _HARMLESS.fullmatch(value)]
    except Exception:  # noqa: BLE001 - whatever it is, a line that is being typed is no place to tell of it
        return []


async def _answer(suggest: Suggest, ctx: click.Context, incomplete: str) -> Sequence[str]:
    from light_scheduler.web.schedule_client import ScheduleReader

    settings = _settings_of(ctx)
    url = ctx.params.get("url") or _variable("url") or url_of_context(ctx, ctx.params) or settings.web_url
    async with asyncio.timeout(TIMEOUT_S), ScheduleReader(url, settings.web_token, settings.http_security) as reader:
        return await suggest(reader, ctx, incomplete)


def _settings_of(ctx: click.Context) -> Settings:
    """Return the settings of a partly typed command line. Raises ConfigurationError."""
    given = {name: value for name, value in ctx.params.items() if name in _SETTINGS}
    return load_settings(given, file=ctx.params.get("config"), context=settings_of_context(ctx))


def _given(ctx: click.Context, name: str) -> Any:
    """Return an option's value. During completion, defaults that are computed when a command runs are missing."""
    return ctx.params.get(name) or _variable(name) or value_of_context(ctx, name)


def _variable(name: str) -> str | None:
    return os.environ.get(f"{ENVIRONMENT_PREFIX}{name.upper()}")
