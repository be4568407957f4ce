"""Deterministic spreading: a firing gets the same offset on every node and after every restart."""

from __future__ import annotations

from hashlib import blake2b


def offset_of(purpose: str, tenant: str, id: str, planned: int, bound: int) -> int:
    """Return a firing's offset, uniform over the whole ms from 0 to `bound`.

    `planned` (UTC epoch ms) distinguishes the firings of a schedule, `purpose` the offsets of one firing.
    """
    if bound == 0:
        return 0
    name = f"{purpose}\0{tenant}\0{id}\0{planned}".encode()
    # 64 bits over a bound of at most 2**49: the bias of the remainder is below 2**-15.
    return int.from_bytes(blake2b(name, digest_size=8).digest(), "big") % (bound + 1)
