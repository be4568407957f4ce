"""Avro schemas that name types of others become one piece, which reads the same data."""

from __future__ import annotations

from io import BytesIO
from typing import Any

import fastavro
import pytest

from light_scheduler.wire.schema_references import in_one_piece

COLOUR = {"type": "enum", "name": "Colour", "namespace": "art", "symbols": ["RED", "BLUE"]}
BRUSH = {"type": "record", "name": "art.Brush", "fields": [{"name": "colour", "type": "Colour"}]}
NESTED = {"type": "record", "name": "art.Box", "fields": [{"name": "first", "type": COLOUR}]}
BARE = {"type": "fixed", "name": "Pair", "size": 2}
LIST = {"type": "record", "name": "List", "namespace": "x", "fields": [{"name": "next", "type": ["null", "List"]}]}
OTHER = {"type": "record", "name": "x.Other", "fields": [{"name": "pair", "type": "Pair"}]}
OWN = {"type": "fixed", "name": "art.Pair", "size": 1}
TREE = {
    "type": "record",
    "name": "Tree",
    "fields": [{"name": "of", "type": ["null", "Tree"]}, {"name": "pair", "type": "Pair"}],
}
LEAF = {"of": None, "pair": b"ab"}


def of(*types: Any, space: str = "art") -> dict[str, Any]:
    fields = [{"name": f"f{n}", "type": type} for n, type in enumerate(types)]
    return {"type": "record", "name": "Main", "namespace": space, "fields": fields}


@pytest.mark.parametrize(
    ("schema", "others", "value"),
    [
        (of("Colour"), [COLOUR], {"f0": "BLUE"}),
        (of("art.Colour", space="other"), [COLOUR], {"f0": "BLUE"}),
        (of("Colour", "Colour"), [COLOUR], {"f0": "BLUE", "f1": "RED"}),
        (of(["null", "Colour"], ["null", "art.Colour"]), [COLOUR], {"f0": None, "f1": "RED"}),
        (of({"type": "array", "items": "Colour"}), [COLOUR], {"f0": ["BLUE", "RED"]}),
        (of({"type": "map", "values": "Brush"}), [COLOUR, BRUSH], {"f0": {"a": {"colour": "RED"}}}),
        (of({"type": "Brush"}), [COLOUR, BRUSH], {"f0": {"colour": "RED"}}),
        (of("Brush", "Colour"), [BRUSH, COLOUR], {"f0": {"colour": "RED"}, "f1": "BLUE"}),
        (of("Colour", "Box"), [NESTED], {"f0": "RED", "f1": {"first": "BLUE"}}),
        (of("Box", "Brush"), [NESTED, BRUSH], {"f0": {"first": "RED"}, "f1": {"colour": "BLUE"}}),
        (of("Box", "Colour"), [COLOUR, NESTED], {"f0": {"first": "RED"}, "f1": "BLUE"}),
        (of("Pair"), [BARE], {"f0": b"ab"}),
        (of("Pair", space=""), [BARE], {"f0": b"ab"}),
        (of("Pair", "Pair"), [BARE], {"f0": b"ab", "f1": b"cd"}),
        (of("Pair", "Pair", space=""), [BARE], {"f0": b"ab", "f1": b"cd"}),
        (of("Pair", "x.Other"), [BARE, OTHER], {"f0": b"ab", "f1": {"pair": b"cd"}}),
        (of("x.Other", "Pair"), [BARE, OTHER], {"f0": {"pair": b"ab"}, "f1": b"cd"}),
        (of("Pair", "x.Other", space=""), [BARE, OTHER], {"f0": b"ab", "f1": {"pair": b"cd"}}),
        (of("Pair", ["null", "Pair"], {"type": "map", "values": "Pair"}), [BARE], {"f0": b"a1", "f1": b"b2", "f2": {}}),
        (of("Tree", "Tree"), [TREE, BARE], {"f0": LEAF | {"of": LEAF}, "f1": LEAF}),
        (of("Pair", "art.Pair"), [BARE, OWN], {"f0": b"a", "f1": b"b"}),
        (of("x.Other", "Pair"), [BARE, OWN, OTHER], {"f0": {"pair": b"ab"}, "f1": b"c"}),
        (of("x.List"), [LIST], {"f0": {"next": {"next": None}}}),
        (of("string", {"type": "long", "logicalType": "timestamp-micros"}), [COLOUR], {"f0": "a", "f1": 7}),
        (of("Colour"), [["null", COLOUR]], {"f0": "RED"}),
        (of({"type": {"type": "enum", "name": "Colour", "symbols": ["RED", "BLUE"]}}), [COLOUR], {"f0": "RED"}),
    ],
)
def test_types_of_other_schemas_stand_where_they_are_named_first(
    schema: dict[str, Any], others: list[Any], value: Any
) -> None:
    whole = fastavro.parse_schema(in_one_piece(schema, others))
    written = BytesIO()
    fastavro.schemaless_writer(written, whole, value)
    written.seek(0)
    found: Any = fastavro.schemaless_reader(written, whole, None)
    assert found.keys() == value.keys()
    assert {name: found[name] for name in found if not hasattr(found[name], "tzinfo")} == {
        name: value[name] for name in value if not hasattr(found[name], "tzinfo")
    }


@pytest.mark.parametrize(
    ("others", "reason"),
    [
        ([COLOUR, COLOUR | {"symbols": ["GREEN"]}], "define art.Colour in two ways"),
        ([{"type": "record", "name": "art.Colour"}, COLOUR], "define art.Colour in two ways"),
        ([{"type": "enum"}], "no Avro schema: KeyError"),
        ([{"name": "Colour"}], "no Avro schema: KeyError"),
        ([{"type": "record", "name": 7, "fields": []}], "no Avro schema"),
        ([{"type": "record", "name": "art.Colour", "fields": 7}], "no Avro schema"),
        ([{"type": "record", "name": "art.Colour", "fields": ["a"]}], "no Avro schema"),
    ],
)
def test_what_is_no_set_of_schemas_is_refused_with_the_reason(others: list[Any], reason: str) -> None:
    with pytest.raises(ValueError, match=reason):
        in_one_piece(of("Colour"), others)


@pytest.mark.parametrize("schema", [7, None, {}, {"type": "array"}, of({"type": "map"}), of(None)])
def test_a_schema_that_is_none_is_refused(schema: Any) -> None:
    with pytest.raises(ValueError, match="no Avro schema"):
        in_one_piece(schema, [COLOUR])


def test_a_name_that_no_schema_defines_is_left_for_the_parser_to_refuse() -> None:
    with pytest.raises(Exception, match="Missing"):
        fastavro.parse_schema(in_one_piece(of("Missing"), [COLOUR]))
