"""The column `tenant` of tables that are loaded."""

from __future__ import annotations

import pyarrow as pa
import pytest

from light_scheduler.engine.limits import NO_LIMITS
from light_scheduler.pipeline.load.columns import Column
from light_scheduler.pipeline.load.records import Record, RecordMaker, Refusal
from light_scheduler.wire.native import NATIVE

NOW = 1_800_000_000_000


def made(tenants: list[str | None], **constants: str) -> list[Record | Refusal]:
    """Return what rows of some tenants come to."""
    rows = {"id": list(map(str, range(len(tenants)))), "target-topic": ["out"] * len(tenants)}
    if not constants:
        rows["tenant"] = tenants  # type: ignore[assignment]  # with nulls
    maker = RecordMaker(tuple(Column(name, name) for name in rows), constants, NO_LIMITS)
    return list(maker.make(maker.read(pa.RecordBatch.from_pydict(rows)), NOW))


def tenant_of(row: Record | Refusal) -> str:
    assert isinstance(row, Record)
    return NATIVE.decode(row).tenant


def test_each_row_is_for_the_tenant_of_its_column_or_for_the_default_one() -> None:
    assert list(map(tenant_of, made(["acme", None, "shop"]))) == ["acme", "default", "shop"]


def test_all_rows_can_be_for_one_tenant() -> None:
    assert list(map(tenant_of, made([None, None], tenant="shop"))) == ["shop", "shop"]


@pytest.mark.parametrize("name", ["no tenant", "", "-shop", "a" * 65])
def test_a_row_for_what_is_no_tenant_is_refused_by_field_and_others_are_sent(name: str) -> None:
    first, refused, last = made(["acme", name, "acme"])
    assert isinstance(refused, Refusal)
    assert refused.field == "tenant"
    assert "is not a tenant name" in refused.reason
    assert [tenant_of(first), tenant_of(last)] == ["acme", "acme"]
