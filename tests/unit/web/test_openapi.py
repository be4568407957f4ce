"""The OpenAPI document by itself."""

from __future__ import annotations

import re
from typing import Any

import pytest
from openapi_spec_validator import validate

from light_scheduler.web.etf1.operations import with_etf1
from light_scheduler.web.openapi import openapi_document
from light_scheduler.web.operations import OPERATIONS


@pytest.mark.parametrize("operations", [OPERATIONS, with_etf1(OPERATIONS)], ids=["ours", "with etf1's"])
def test_the_document_is_valid(operations: Any) -> None:
    validate(openapi_document("1", operations))


def test_names_in_paths_have_the_pattern_that_workers_hold_them_to() -> None:
    described = openapi_document("1")["paths"]["/api/v1/tenants/{tenant}/schedules"]["get"]["parameters"]
    (tenant,) = [each["schema"]["pattern"] for each in described if each["in"] == "path"]
    assert re.search(tenant, "shop-1.eu")
    for wrong in ("", "-shop", "a/b", "a" * 65):
        assert not re.search(tenant, wrong)
