"""Kafka's own partitioner: murmur2 of the key, as in the Java client.

The native implementation takes 0.25 us per key, aiokafka's pure Python implementation 4 us for 12 bytes.
"""

from __future__ import annotations

from collections.abc import Callable

_SEED = 0x9747B28C
_FACTOR = 0x5BD1E995
_BITS = 0xFFFFFFFF


def _murmur2() -> Callable[[bytes, int], int]:
    """Return the hash function `(key, seed) -> hash`."""
    try:
        from murmurhash2 import murmurhash2
    except ImportError:
        # There are only wheels for Linux on x86-64.
        from aiokafka.partitioner import murmur2

        return lambda key, _seed: murmur2(key)
    return murmurhash2


_hash = _murmur2()


def partition_for(key: bytes, partitions: int) -> int:
    """Return the partition that every Kafka client with the default partitioner chooses for a key."""
    return (_hash(key, _SEED) & 0x7FFFFFFF) % partitions


def key_with_hash(number: int) -> bytes:
    """Return a key of four bytes that goes to partition `number % partitions` in any topic. `number` has 31 bits.

    So keys for consecutive numbers go to consecutive partitions. murmur2 maps the key to the number. Each of its steps
    can be inverted for four bytes.
    """
    unmixed = _unshifted(_unmultiplied(_unshifted(number & 0x7FFFFFFF, 15)), 13)
    block = _unmultiplied(unmixed ^ (_SEED ^ 4) * _FACTOR & _BITS)
    return _unmultiplied(_unshifted(block, 24)).to_bytes(4, "little")


def _unmultiplied(product: int) -> int:
    return product * pow(_FACTOR, -1, _BITS + 1) & _BITS


def _unshifted(mixed: int, bits: int) -> int:
    """Return the 32-bit number x for which `x ^ x >> bits` is `mixed`."""
    found = mixed
    for _ in range(32 // bits):
        found = mixed ^ found >> bits
    return found


def chooser(partitions: int) -> Callable[[bytes], int]:
    """Return a fast `partition_for` with a fixed number of partitions, for many keys."""
    hashed, seed = _hash, _SEED
    return lambda key: (hashed(key, seed) & 0x7FFFFFFF) % partitions
