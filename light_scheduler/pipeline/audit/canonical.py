"""The commands of plain one-shots, built as columns: byte for byte what `encode_asked` makes of them."""

from __future__ import annotations

from hashlib import sha256
from typing import NamedTuple

import msgspec
import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from light_scheduler.model import After, Once, ScheduleCommand, Target

from .evidence import digest_as_headers, encode_asked
from .header_lists import HeaderLists, Mask, each_value

_encode = msgspec.msgpack.Encoder().encode
_NOTHING = ScheduleCommand("", "", None, Once(0), Target(""), None, [], 0, 0, 0)
_FIELDS = ScheduleCommand.__struct_fields__
_BEGIN = encode_asked(_NOTHING).partition(_encode(_FIELDS[0]))[0]
_ONCE, _NOT_LATE = _encode(Once(0)).split(_encode(0))
_AFTER = _encode(After(0)).removesuffix(_encode(0))
_TARGET, _NO_PARTITION = _encode(Target("x", b"")).split(_encode("x") + _encode(b""))
_PAIR = _encode((None, None))[:1]
_DIGEST_SIZE = sha256().digest_size
_HEADERS = _encode(digest_as_headers(bytes(_DIGEST_SIZE)))[:-_DIGEST_SIZE]


class PlainCommands(NamedTuple):
    """Commands for plain one-shots, a column for each value. Instants are UTC epoch ms.

    Texts are binary, and so are the digests of `payload` and `headers` as rows of evidence have them. `timing` is what
    `at_instants` or `after_delays` returns.
    """

    tenant: pa.Array
    id: pa.Array
    key: pa.Array
    timing: pa.Array
    topic: pa.Array
    payload: pa.Array
    headers: pa.Array
    partition: pa.Array
    offset: pa.Array
    recorded_at: pa.Array


def at_instants(due: pa.Array) -> pa.Array:
    """Return the time rules of commands for instants (UTC epoch ms)."""
    return joined(_ONCE, _numbers(due), _NOT_LATE)


def after_delays(delays: pa.Array) -> pa.Array:
    """Return the time rules of commands with delays (ms)."""
    return joined(_AFTER, _numbers(delays))


def packed(commands: PlainCommands) -> pa.Array:
    """Return the values of the commands' rows of evidence."""
    key = _bytes(commands.key)
    values = {
        "tenant": (_texts(commands.tenant),),
        "id": (_texts(commands.id),),
        "key": (key,),
        "timing": (commands.timing,),
        "target": (_TARGET, _texts(commands.topic), key, _NO_PARTITION),
        "payload": (_bytes(commands.payload),),
        "headers": (_HEADERS, commands.headers),
        "partition": (_numbers(commands.partition),),
        "offset": (_numbers(commands.offset),),
        "recorded_at": (_numbers(commands.recorded_at),),
    }
    pieces = [_BEGIN]
    for field in _FIELDS:
        pieces += [_encode(field), *values.get(field, (_encode(getattr(_NOTHING, field)),))]
    return joined(*pieces)


def headers_digests(lists: HeaderLists, chosen: Mask) -> pa.Array:
    """Return what stands for the chosen headers of each record, as `evidence.headers_digest` has it."""
    meant = pa.array(chosen)
    names = lists.each_name(_encode, pa.binary()).filter(meant)
    values = pc.fill_null(_bytes(lists.values.filter(meant)), _encode(None))
    counts = np.bincount(lists.owners[chosen], minlength=len(lists.ends))
    ends = pa.array(np.concatenate([[0], np.cumsum(counts)]), pa.int32())
    of_record = pa.ListArray.from_arrays(ends, joined(_PAIR, names, values))
    begins = each_value(pa.array(counts), _list_begin, pa.binary())
    return each_value(joined(begins, pc.binary_join(of_record, b"")), _sha256, pa.binary())


def joined(*pieces: pa.Array | bytes) -> pa.Array:
    """Return the concatenation of columns of bytes, and bytes that are the same in each; null if one is null."""
    return pc.binary_join_element_wise(*(_scalar(each) if isinstance(each, bytes) else each for each in pieces), _NONE)


def digits(numbers: pa.Array) -> pa.Array:
    """Return numbers in decimal."""
    return numbers.cast(pa.string()).cast(pa.binary())


def _texts(column: pa.Array) -> pa.Array:
    return joined(each_value(pc.binary_length(column), _text_begin, pa.binary()), column)


def _bytes(column: pa.Array) -> pa.Array:
    return joined(each_value(pc.binary_length(column), _bytes_begin, pa.binary()), column)


def _numbers(column: pa.Array) -> pa.Array:
    return each_value(column, _encode, pa.binary())


def _text_begin(length: int) -> bytes:
    return _encode("x" * length)[: -length or None]


def _bytes_begin(length: int) -> bytes:
    return _encode(bytes(length))[: -length or None]


def _list_begin(length: int) -> bytes:
    return _encode([None] * length)[: -length or None]


def _sha256(value: bytes) -> bytes:
    return sha256(value).digest()


def _scalar(value: bytes) -> pa.Scalar:
    return pa.scalar(value, pa.binary())


_NONE = _scalar(b"")
