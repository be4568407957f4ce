"""Converts errors that name headers of commands to errors that name the client's arguments."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from types import MappingProxyType

from light_scheduler.errors import InvalidCommand
from light_scheduler.wire.named_fields import in_names

from .commands import InvalidHeader

_ARGUMENTS = {"target-topic": "topic", "target-key-base64": "target_key"}
_NO_OTHERS: Mapping[str, str] = MappingProxyType({})


@contextmanager
def argument_errors(others: Mapping[str, str] = _NO_OTHERS) -> Iterator[None]:
    """Raise errors of `commands` with the argument names of `SchedulerClient.schedule`. `others` maps fields to other
    arguments."""
    names = {**_ARGUMENTS, **others}

    def name_of(field: str) -> str:
        return names.get(field) or field.replace("-", "_")

    try:
        yield
    except InvalidHeader as error:
        raise InvalidCommand("headers", f"{error.field}: {error.reason}") from None
    except InvalidCommand as error:
        raise InvalidCommand(in_names(error.field, name_of), in_names(error.reason, name_of)) from error.__cause__
