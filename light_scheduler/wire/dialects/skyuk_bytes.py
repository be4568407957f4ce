"""Reads schedules of sky-uk in the newest published schema byte by byte, several times faster than a decoder.

    time       number, UTC epoch ms
    topic      text
    key        bytes
    value      0: null; or 2, and bytes
    headers    map of bytes

Numbers, texts and maps are as in `avro_bytes`. Unusual data is left to the decoder. So are JSON and framed data, which
are recognised because a time with several bytes begins differently.
"""

from __future__ import annotations

from functools import lru_cache

from light_scheduler.model import LATEST_INSTANT, Headers, Target
from light_scheduler.wire.dialect import Plain
from light_scheduler.wire.fields import parse_topic

from .avro_bytes import LONG, ODD_OR_LONG, UNION_SECOND, UNREADABLE, instant, text


def plain_schedule(body: bytes) -> Plain | None:
    """Read a schedule; None if a decoder must read it or report what is wrong."""
    try:
        if body[0] < LONG:
            return None
        due, at = instant(body, 0)
        # This is `text` inlined for topic and key, since a call takes longer.
        size, begin = body[at], at + 1
        if size & ODD_OR_LONG:
            return None
        at = begin + (size >> 1)
        topic = _topic(body[begin:at])
        size, begin = body[at], at + 1
        if size & ODD_OR_LONG:
            begin, at = text(body, at)
        else:
            at = begin + (size >> 1)
        key, value = body[begin:at], None
        if body[at] == UNION_SECOND:
            begin, at = text(body, at + 1)
            value = body[begin:at]
        elif body[at]:
            return None
        else:
            at += 1
        headers, at = _headers(body, at) if body[at] else ([], at + 1)
    except UNREADABLE:
        return None
    return (due, Target(topic, key), value, headers) if at == len(body) and due <= LATEST_INSTANT else None


def _headers(body: bytes, at: int) -> tuple[Headers, int]:
    """Return the entries of a non-empty map, and its end. Raises UNREADABLE."""
    count = body[at]
    at += 1
    if count & ODD_OR_LONG:
        raise ValueError
    headers: Headers = []
    for _ in range(count >> 1):
        begin, at = text(body, at)
        name = body[begin:at].decode()
        begin, at = text(body, at)
        headers.append((name, body[begin:at]))
    if body[at] or (count > 2 and len(dict(headers)) != count >> 1):
        raise ValueError
    return headers, at + 1


@lru_cache(maxsize=4096)
def _topic(name: bytes) -> str:
    return parse_topic(name.decode())
