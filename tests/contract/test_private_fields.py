"""The private fields of aiokafka and Faust that are relied on: each is there, and each that is used is named."""

from __future__ import annotations

import ast
import importlib
import inspect
import textwrap
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from light_scheduler.kafka.private import PRIVATE_FIELDS

ROOT = Path(__file__).resolve().parents[2]
ROOMS = [ROOT / "light_scheduler", ROOT / "agents", ROOT / "tables"]
NAMED = {field for fields in PRIVATE_FIELDS.values() for field in fields}
NOT_THEIRS = {
    "_replace": "of every NamedTuple",
    "_mapping": "documented of rows of SQLAlchemy",
    "_exit": "of os",
    "_PARTITION_EOF": "documented codes of confluent_kafka.KafkaError",
    "_TIMED_OUT": "",
    "_INVALID_ARG": "",
    "_fields": "of named tuples",
    "_field_defaults": "of named tuples",
    "_TRANSPORT": "",
    "_ALL_BROKERS_DOWN": "",
    "_MSG_TIMED_OUT": "",
    "_UNKNOWN_TOPIC": "",
    "_UNKNOWN_PARTITION": "",
}


def fields_of(kind: type[Any]) -> set[str]:
    """Return the attributes of a class and of its instances, from the source of it and of its bases."""
    found: set[str] = set()
    for base in kind.__mro__[:-1]:
        found |= vars(base).keys() | getattr(base, "__annotations__", {}).keys()
        try:
            tree = ast.parse(textwrap.dedent(inspect.getsource(base)))
        except OSError:  # made while Python runs
            continue
        found |= {
            node.attr
            for node in ast.walk(tree)
            if isinstance(node, ast.Attribute) and isinstance(node.ctx, ast.Store) and ast.unparse(node.value) == "self"
        }
    return found


@pytest.mark.parametrize(
    ("owner", "field"), [(owner, field) for owner, fields in PRIVATE_FIELDS.items() for field in fields]
)
def test_a_private_field_is_there(owner: str, field: str) -> None:
    module_name, _, name = owner.partition(":")
    module = importlib.import_module(module_name)
    assert field in (fields_of(getattr(module, name)) if name else vars(module))


def foreign_fields() -> Iterator[tuple[str, str]]:
    """Yield each private attribute that our source uses of something that is not `self`, and the file."""
    for room in ROOMS:
        for path in room.rglob("*.py"):
            if "pipeline" in path.relative_to(ROOT).parts:
                continue  # Spark's, on the other side of a wall
            for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
                if isinstance(node, ast.Attribute) and node.attr.startswith("_") and not node.attr.startswith("__"):
                    owner = node.value
                    if not (isinstance(owner, ast.Name) and owner.id in ("self", "cls")):
                        yield node.attr, str(path.relative_to(ROOT))


def test_every_private_field_that_is_used_is_named() -> None:
    assert {(field, path) for field, path in foreign_fields() if field not in NAMED | NOT_THEIRS.keys()} == set()


def test_every_field_that_is_named_is_used() -> None:
    source = "\n".join(
        path.read_text(encoding="utf-8") for room in ROOMS for path in room.rglob("*.py") if path.name != "private.py"
    )
    assert {field for field in NAMED if field not in source} == set()
