"""Formats of metrics for Prometheus, and which of them a scrape asks for."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from typing import NamedTuple

from prometheus_client import CONTENT_TYPE_LATEST, generate_latest
from prometheus_client.registry import Collector

from .node import together
from .protobuf import MEDIA_TYPE, generate_protobuf

ACCEPT = "Accept"

_WEIGHT = re.compile(";q=([^;]*)")


class Exposition(NamedTuple):
    """A format. `together` merges the expositions of several processes."""

    media_type: str
    generate: Callable[[Collector], bytes]
    together: Callable[[Iterable[bytes]], bytes]


TEXT = Exposition(CONTENT_TYPE_LATEST, generate_latest, together)
PROTOBUF = Exposition(MEDIA_TYPE, generate_protobuf, b"".join)


def exposition_wanted(accept: str) -> Exposition:
    """Return the format for a header `Accept`: protobuf if that is wanted more than others.

    A Prometheus that takes native histograms names it first.
    """
    weights = {True: 0.0, False: 0.0}
    for media_range in accept.split(","):
        plain = _plain(media_range)
        weight = _WEIGHT.search(plain)
        is_protobuf = plain.startswith(_plain(MEDIA_TYPE))
        weights[is_protobuf] = max(weights[is_protobuf], 1.0 if weight is None else _number(weight[1]))
    return PROTOBUF if weights[True] > weights[False] else TEXT


def _plain(media_range: str) -> str:
    return "".join(media_range.lower().split())


def _number(weight: str) -> float:
    try:
        return float(weight)
    except ValueError:
        return 0.0
