"""A batch as no client of ours would write it."""

from __future__ import annotations

import struct
from typing import Any

from aiokafka.producer.message_accumulator import BatchBuilder
from aiokafka.record.util import calc_crc32c


class GarbledBatch(BatchBuilder):  # type: ignore[misc]  # aiokafka is not typed
    """A batch in which the header name `garbled` has become bytes that are not UTF-8."""

    def _build(self) -> Any:
        if self._buffer is None:
            batch = super()._build().replace(b"garbled", b"\xff\xfe\xfdbled")
            struct.pack_into(">I", batch, 17, calc_crc32c(bytes(batch[21:])))
            self._buffer: Any = batch
        return self._buffer
