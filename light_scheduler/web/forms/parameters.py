"""Converts a query string to a query. `ListParameters` declares the parameters, also for OpenAPI."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import cache
from typing import Annotated, Any, TypeVar

import msgspec
from msgspec import UNSET, Meta, UnsetType
from multidict import MultiMapping

from light_scheduler.model import State
from light_scheduler.tables.views import DEFAULT_LIMIT, MAX_LIMIT, Lane, Query, QueryError, Sort
from light_scheduler.wire.durations import shown
from light_scheduler.wire.fields import closest, parse_labels, parse_tenant, parse_topic
from light_scheduler.wire.instants import parse_instant, parse_lower_bound

from .expected import EXPECTED, expected
from .text_forms import INSTANT, LOWER_BOUND, PART, TOPIC, described

T = TypeVar("T")
P = TypeVar("P", bound=msgspec.Struct)

PARTITION_EXAMPLE = "light-scheduler-commands[3]"
"""A partition of an application with the default name."""

PartitionName = Annotated[
    str,
    Meta(
        pattern=r"^[A-Za-z0-9._-]{1,249}\[[0-9]{1,9}\]$",
        description=f"Only schedules in this partition: commands topic and number, such as `{PARTITION_EXAMPLE}`.",
        extra={EXPECTED: f"a commands topic and the number of a partition in brackets, such as {PARTITION_EXAMPLE}"},
    ),
]

_INSTANT = "UTC epoch ms, or RFC 3339 with an offset."


class ListParameters(msgspec.Struct, frozen=True, kw_only=True):
    """The query string of a list."""

    id_prefix: Annotated[str, described("Only schedules whose id begins with this text.", PART)] = ""
    id_contains: Annotated[
        str, described("Only schedules whose id has this text somewhere. Many rows may be read for one match.", PART)
    ] = ""
    target_topic: Annotated[str, described("Only schedules that deliver to this topic.", TOPIC)] | UnsetType = UNSET
    partition: PartitionName | UnsetType = UNSET
    state: Annotated[State, Meta(description="Only schedules in this state.")] | UnsetType = UNSET
    label: Annotated[
        list[str],
        Meta(description="Only schedules with all these labels: `team=billing,kind=reminder`. Can be repeated."),
    ] = []
    label_contains: Annotated[
        str, described("Only schedules with this text somewhere in a label, written as `name=value`.", PART)
    ] = ""
    due_from: (
        Annotated[str, described(f"Only schedules due at this instant or later: {_INSTANT}", LOWER_BOUND)] | UnsetType
    ) = UNSET
    due_to: Annotated[str, described(f"Only schedules due before this instant: {_INSTANT}", INSTANT)] | UnsetType = (
        UNSET
    )
    sort: Annotated[
        Sort,
        Meta(description="`id`: by UTF-8 bytes. `due`: by the order of delivery, which makes due ranges fast."),
    ] = "id"
    limit: Annotated[int, Meta(ge=1, le=MAX_LIMIT, description="Maximum number of rows in a page.")] = DEFAULT_LIMIT
    cursor: (
        Annotated[str, Meta(description="`next_cursor` of the page before. Keep the other parameters.")] | UnsetType
    ) = UNSET


def list_query(
    tenant: str,
    given: MultiMapping[str],
    named: Callable[[str], Lane],
    opened: Callable[[str | UnsetType], str | UnsetType] = lambda cursor: cursor,
) -> Query:
    """Return the query that a request asks for. `named` resolves a `PartitionName`, and `opened` a sealed cursor.
    Raises QueryError naming the invalid parameter."""
    parameters = read_parameters(ListParameters, given)
    cursor = opened(parameters.cursor)
    return Query(
        tenant=checked("tenant", parse_tenant, tenant),
        id_prefix=parameters.id_prefix,
        id_contains=parameters.id_contains,
        target_topic=optional("target_topic", parse_topic, parameters.target_topic),
        lane=None if parameters.partition is UNSET else named(parameters.partition),
        state=None if parameters.state is UNSET else parameters.state,
        labels=checked("label", parse_labels, ",".join(filter(None, parameters.label))),
        label_contains=parameters.label_contains,
        due_from=optional("due_from", parse_lower_bound, parameters.due_from),
        due_to=optional("due_to", parse_instant, parameters.due_to),
        sort=parameters.sort,
        limit=parameters.limit,
        cursor=None if cursor is UNSET else cursor,
    )


def lane_named(name: str) -> Lane:
    """Return the commands topic and the partition that a `PartitionName` names."""
    topic, _, number = name.removesuffix("]").rpartition("[")
    return topic, int(number)


def checked(name: str, parse: Callable[[str], T], text: str) -> T:
    """Return a parsed parameter. Raises QueryError naming it."""
    try:
        return parse(text)
    except ValueError as error:
        raise QueryError(name, str(error)) from None


def optional(name: str, parse: Callable[[str], T], text: str | UnsetType) -> T | None:
    """Return a parsed parameter, or None if it was not given. Raises QueryError naming it."""
    return None if text is UNSET else checked(name, parse, text)


def read_parameters(kind: type[P], given: MultiMapping[str]) -> P:
    """Return a query string's parameters. Names may have hyphens for underscores. Raises QueryError if one is invalid.

    Only list parameters may be repeated.
    """
    declared = _declared(kind)
    values: dict[str, Any] = {}
    for given_name in dict.fromkeys(given):
        name = given_name.replace("-", "_")
        if name not in declared:
            raise QueryError(name, f"is not known{closest(name, declared) or '.'} Parameters: {', '.join(declared)}")
        texts, encoded = given.getall(given_name), declared[name].encode_name
        if declared[name].default_factory is list:
            values[encoded] = texts
            for text in texts:
                _check(declared[name], text, [text], kind)
        elif len(texts) > 1 or encoded in values:
            raise QueryError(name, "is given more than once")
        else:
            values[encoded] = texts[0]
            _check(declared[name], texts[0], texts[0], kind)
    return msgspec.convert(values, kind, strict=False)


@cache
def _declared(kind: type[msgspec.Struct]) -> Mapping[str, msgspec.structs.FieldInfo]:
    """Return the parameters by name. Cached: evaluating their types takes longer than answering many a list."""
    return {_parameter(field): field for field in msgspec.structs.fields(kind)}


def _check(field: msgspec.structs.FieldInfo, text: str, value: str | list[str], kind: type[msgspec.Struct]) -> None:
    try:
        # One parameter at a time, so that the error is about this one. Not strict, since numbers arrive as text.
        msgspec.convert({field.encode_name: value}, kind, strict=False)
    except msgspec.ValidationError as error:
        valid = expected(field.type)
        reason = str(error).partition(" - at `")[0] if valid is None else f"must be {valid}, not {shown(text)}"
        raise QueryError(_parameter(field), reason) from None


def _parameter(field: msgspec.structs.FieldInfo) -> str:
    """Return the name of a parameter for error messages."""
    return field.encode_name.replace("-", "_")
