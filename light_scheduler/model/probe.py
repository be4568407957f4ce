"""Probes: schedules of workers' own that show whether a partition carries out what it is sent."""

from __future__ import annotations

from typing import Literal, NamedTuple

PROBE_TENANT = ""
"""The tenant of probes. No command and no query can name it, since a tenant's name has at least one character."""

PROBE_ID = "probe"
"""Each partition has at most one probe: the next one replaces it."""

PROBE_IDENTITY = f"{PROBE_TENANT}\0{PROBE_ID}".encode()
"""The identity (`wire.state`) of a partition's probe."""

ProbeStep = Literal["sent", "fired"]


class ProbeMark(NamedTuple):
    """The mark of a record of a probe: it was sent, or has fired. `number` is 32 hexadecimal digits."""

    step: ProbeStep
    number: str


def is_probe(identity: bytes) -> bool:
    """Return whether an identity is that of a probe."""
    return identity.startswith(b"\0")
