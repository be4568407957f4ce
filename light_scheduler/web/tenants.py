"""The HTTP handlers of tenants' rules. Each is named like its operation (see `operations`)."""

from __future__ import annotations

import logging
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partialmethod
from http import HTTPStatus

import msgspec
from aiohttp import web

from light_scheduler.errors import BrokerError
from light_scheduler.model.tenant_rules import TenantRules, TenantRulesError, TenantState, TenantWasDeleted
from light_scheduler.tenants import TenantStore
from light_scheduler.wire.fields import parse_tenant

from .access.requesters import requester_of
from .forms.json_bodies import BodyError, read_json
from .forms.parameters import checked
from .forms.problems import RETRY_AFTER_S, ProblemError, ProblemType
from .tenant_documents import TenantDocument, TenantList

_JSON = "application/json"

log = logging.getLogger(__name__)


class TenantHandlers:
    """One method per operation."""

    def __init__(self, tenants: TenantStore) -> None:
        self._tenants = tenants

    async def list_tenants(self, request: web.Request) -> web.Response:
        del request
        return _json(TenantList.of(self._tenants.book))

    async def get_tenant(self, request: web.Request) -> web.Response:
        name = _name(request)
        tenant = self._tenants.book.get(name)
        if tenant is None:
            raise ProblemError(HTTPStatus.NOT_FOUND, f"Tenant {name} has no rules.")
        return _json(TenantDocument.of(tenant))

    async def put_tenant(self, request: web.Request) -> web.Response:
        name, by = _name(request), requester_of(request)
        with _problems():
            rules = read_json(await request.read(), TenantRules)
        is_new = False

        def change(before: TenantRules) -> TenantRules:
            nonlocal is_new
            del before  # all rules are replaced
            is_new = self._tenants.book.get(name) is None
            return rules

        with _problems():
            tenant = await self._tenants.set_rules(name, change, by=by)
        log.info("the rules of tenant %s were set by %s from %s", name, by.by, by.address)
        return _json(TenantDocument.of(tenant), HTTPStatus.CREATED if is_new else HTTPStatus.OK)

    async def _set_state(self, request: web.Request, state: TenantState) -> web.Response:
        name, by = _name(request), requester_of(request)
        with _problems():
            tenant = await self._tenants.set_state(name, state, by=by)
        log.info("tenant %s was set to %s by %s from %s", name, state, by.by, by.address)
        return _json(TenantDocument.of(tenant))

    pause_tenant = partialmethod(_set_state, state=TenantState.PAUSED)
    resume_tenant = partialmethod(_set_state, state=TenantState.ACTIVE)
    delete_tenant = partialmethod(_set_state, state=TenantState.DELETED)


def _name(request: web.Request) -> str:
    return checked("tenant", parse_tenant, request.match_info["tenant"])


@contextmanager
def _problems() -> Iterator[None]:
    try:
        yield
    except TenantWasDeleted as error:
        raise ProblemError(HTTPStatus.CONFLICT, str(error)) from None
    except (TenantRulesError, BodyError) as error:
        raise ProblemError(
            HTTPStatus.BAD_REQUEST, str(error), parameter=error.field, type=ProblemType.INVALID_TENANT_RULES
        ) from None
    except BrokerError as error:
        retry_after_s = RETRY_AFTER_S if error.retriable else None
        raise ProblemError(HTTPStatus.SERVICE_UNAVAILABLE, str(error), retry_after_s=retry_after_s) from None


def _json(document: msgspec.Struct, status: HTTPStatus = HTTPStatus.OK) -> web.Response:
    return web.Response(status=status, body=msgspec.json.encode(document), content_type=_JSON)
