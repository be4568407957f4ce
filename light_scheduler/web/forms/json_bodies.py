"""JSON bodies as the types that the OpenAPI document describes."""

from __future__ import annotations

from typing import Any, TypeVar

import msgspec

from light_scheduler.errors import FieldError
from light_scheduler.wire.durations import MAX_SHOWN
from light_scheduler.wire.fields import closest

from .expected import expected

T = TypeVar("T", bound=msgspec.Struct)

BODY = "body"
"""What an error names if not a single member is wrong."""

_LONGER = 2**63
"""No integer of a document is this large."""


class BodyError(FieldError):
    """A body is not the document that was expected. `field` is the member at fault, or `BODY`."""


def _number(text: str) -> float:
    number = float(text)
    return int(number) if number.is_integer() and abs(number) < _LONGER else number


_MEMBERS = msgspec.json.Decoder(dict[str, msgspec.Raw])
_ANY = msgspec.json.Decoder(float_hook=_number)


def read_json(body: bytes, kind: type[T]) -> T:
    """Decode a body. Raises BodyError naming the member at fault.

    As in JSON Schema, a number without a fraction is an integer, however it is written: 2.0 is 2.
    """
    members, fields = _members_of(body), {field.encode_name: field for field in msgspec.structs.fields(kind)}
    for name in members:
        if name not in fields:
            raise BodyError(name, f"is not known{closest(name, fields) or '.'} Members: {', '.join(fields)}")
    for name, field in fields.items():
        if field.required and name not in members:
            raise BodyError(name, "is required")
    return kind(**{fields[name].name: _value(name, raw, fields[name].type) for name, raw in members.items()})


def _members_of(body: bytes) -> dict[str, msgspec.Raw]:
    try:
        return _MEMBERS.decode(body)
    except msgspec.ValidationError:
        raise BodyError(BODY, "must be a JSON object") from None
    except (msgspec.DecodeError, UnicodeDecodeError) as error:
        raise BodyError(BODY, f"is not JSON: {error}") from None
    except RecursionError:
        raise BodyError(BODY, "is nested too deeply") from None


def _value(name: str, raw: msgspec.Raw, kind: Any) -> Any:
    try:
        return msgspec.convert(_ANY.decode(raw), kind)
    except UnicodeDecodeError as error:
        raise BodyError(name, f"is not UTF-8: {error}") from None
    except msgspec.MsgspecError as error:
        valid = expected(kind)
        raise BodyError(name, str(error) if valid is None else f"must be {valid}, not {_shown(raw)}") from None


def _shown(raw: msgspec.Raw) -> str:
    """Return the JSON of a value for an error message, shortened if it is long."""
    text = bytes(raw).decode(errors="replace")
    return text if len(text) <= MAX_SHOWN else f"{text[:MAX_SHOWN]}..."
