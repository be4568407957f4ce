from __future__ import annotations

import sys

import pytest
from aiokafka.partitioner import murmur2
from hypothesis import given
from hypothesis import strategies as st

from light_scheduler.wire import partition_for, partitioner

# From Kafka's own UtilsTest.testMurmur2, as unsigned numbers.
KAFKAS_OWN = {
    b"21": -973932308,
    b"foobar": -790332482,
    b"a-little-bit-long-string": -985981536,
    b"a-little-bit-longer-string": -1486304829,
    b"lkjh234lh9fiuh90y23oiuhsafujhadof229phr9h19h89h8": -58897971,
    b"abc": 479470107,
}


@pytest.mark.parametrize(("key", "hashed"), KAFKAS_OWN.items())
def test_agrees_with_the_java_client(key: bytes, hashed: int) -> None:
    assert partition_for(key, 2**31) == hashed & 0x7FFFFFFF


@given(st.binary(max_size=100), st.integers(1, 10_000))
def test_agrees_with_aiokafka_on_any_bytes(key: bytes, partitions: int) -> None:
    assert partition_for(key, partitions) == (murmur2(key) & 0x7FFFFFFF) % partitions
    assert partitioner.chooser(partitions)(key) == partition_for(key, partitions)


@given(st.text(max_size=20))
def test_agrees_with_aiokafka_on_text_of_any_script(key: str) -> None:
    assert partition_for(key.encode(), 12) == (murmur2(key.encode()) & 0x7FFFFFFF) % 12


def test_without_the_native_package_the_partitions_are_the_same(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "murmurhash2", None)
    hashed = partitioner._murmur2()
    assert hashed is not partitioner._hash
    assert hashed(b"order-1", 0) == murmur2(b"order-1")


@given(st.integers(0, 2**31 - 1), st.integers(1, 10_000))
def test_a_number_has_a_key_that_goes_to_its_partition_of_any_topic(number: int, partitions: int) -> None:
    key = partitioner.key_with_hash(number)
    assert murmur2(key) & 0x7FFFFFFF == number
    assert partition_for(key, partitions) == number % partitions
