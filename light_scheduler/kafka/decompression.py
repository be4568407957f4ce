"""Limits the decompression of record batches, since a few bytes can unpack to more than the machine's memory.

aiokafka unpacks a whole batch before it reads a record. This module replaces its decoders, for all consumers of the
process, with decoders that stop at `MAX_UNPACKED_BYTES`.
"""

from __future__ import annotations

import importlib
import struct
import zlib
from collections.abc import Callable

import cramjam
from aiokafka import codec

MAX_UNPACKED_BYTES = 64 << 20
"""Limit for one batch. Producers limit batches before compression, by default to 1 MiB or less."""

_FIRST_GUESS = 16
_XERIAL_HEADER_BYTES = 16


class BatchTooLargeError(Exception):
    """A batch unpacks to more than the limit, or cannot be unpacked."""

    def __init__(self, packed: int) -> None:
        super().__init__(
            f"a compressed batch of {packed:,} bytes cannot be unpacked to {MAX_UNPACKED_BYTES:,} bytes or less"
        )


def install() -> None:
    """Replace aiokafka's decoders."""
    for name in ("aiokafka.record.default_records", "aiokafka.record._crecords.default_records"):
        try:
            module = importlib.import_module(name)
        except ImportError:  # aiokafka without its extension
            continue
        module.gzip_decode = _gzip  # type: ignore[attr-defined]
        module.snappy_decode = _snappy  # type: ignore[attr-defined]
        module.lz4_decode = _into(cramjam.lz4.decompress_into)  # type: ignore[attr-defined]
        module.zstd_decode = _into(cramjam.zstd.decompress_into)  # type: ignore[attr-defined]


def _gzip(packed: bytes) -> bytes:
    rest, unpacked = bytes(packed), b""
    while rest:  # there may be several streams, one after another
        unpacking = zlib.decompressobj(zlib.MAX_WBITS | 16)
        room = MAX_UNPACKED_BYTES - len(unpacked)
        try:
            unpacked += unpacking.decompress(rest, max(1, room))  # 0 would mean no limit
        except zlib.error as error:
            raise BatchTooLargeError(len(packed)) from error
        if not unpacking.eof or len(unpacked) > MAX_UNPACKED_BYTES:
            raise BatchTooLargeError(len(packed))
        rest = unpacking.unused_data
    return unpacked


def _into(unpack: Callable[[bytes, bytearray], int]) -> Callable[[bytes], bytes]:
    """Return a decoder that unpacks into buffers of growing size, up to the limit."""

    def decode(packed: bytes) -> bytes:
        size = min(MAX_UNPACKED_BYTES, max(1 << 16, _FIRST_GUESS * len(packed)))
        while True:
            buffer = bytearray(size)
            try:
                return bytes(memoryview(buffer)[: unpack(packed, buffer)])
            except cramjam.DecompressionError as error:  # damaged or larger: it does not say which
                if size == MAX_UNPACKED_BYTES:
                    raise BatchTooLargeError(len(packed)) from error
            size = min(MAX_UNPACKED_BYTES, _FIRST_GUESS * size)

    return decode


def _snappy(packed: bytes) -> bytes:
    """Check the size, which Snappy stores in front, before unpacking. Java's framing has several blocks of Snappy."""
    unpacked = 0
    try:
        for block in _snappy_blocks(packed):
            unpacked += cramjam.snappy.decompress_raw_len(block)
            if unpacked > MAX_UNPACKED_BYTES:
                raise BatchTooLargeError(len(packed))
        return bytes(codec.snappy_decode(packed))
    except (cramjam.DecompressionError, struct.error, ValueError) as error:
        raise BatchTooLargeError(len(packed)) from error


def _snappy_blocks(packed: bytes) -> list[bytes]:
    if not codec._detect_xerial_stream(packed):
        return [packed]
    blocks, at = [], _XERIAL_HEADER_BYTES
    while at < len(packed):
        (length,) = struct.unpack_from("!i", packed, at)
        if length < 0:
            raise ValueError("a block has a negative length")
        blocks.append(packed[at + 4 : at + 4 + length])
        at += 4 + length
    return blocks


install()
