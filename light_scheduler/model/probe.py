"""Probes: schedules that workers create to check whether a partition executes its commands."""

from __future__ import annotations

from typing import Literal, NamedTuple

PROBE_TENANT = ""
"""The tenant of probes. Commands and queries cannot name it, since a tenant name has at least one character."""

PROBE_ID = "probe"
"""Each partition has at most one probe, which the next one replaces."""

PROBE_IDENTITY = f"{PROBE_TENANT}\0{PROBE_ID}".encode()
"""The identity (`wire.state`) of a partition's probe."""

ProbeStep = Literal["sent", "fired"]


class ProbeMark(NamedTuple):
    """The mark on records of a probe: the probe was sent, or has fired. `number` is 32 hexadecimal digits."""

    step: ProbeStep
    number: str


def is_probe(identity: bytes) -> bool:
    """Return whether an identity belongs to a probe."""
    return identity.startswith(b"\0")
