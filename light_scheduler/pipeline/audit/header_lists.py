"""The headers of many records, in flat arrays."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

Mask = np.ndarray[Any, np.dtype[np.bool_]]
Numbers = np.ndarray[Any, np.dtype[np.int64]]


class HeaderLists(NamedTuple):
    """`names` (text) and `values` (bytes or null) of all headers in order; those of record i end before `ends[i]`."""

    names: pa.Array
    values: pa.Array
    ends: Numbers

    @classmethod
    def of(cls, column: pa.ListArray) -> HeaderLists:
        """Flatten a column of lists of (key, value); a null list has no headers."""
        pairs = column.flatten()
        lengths = pc.fill_null(pc.list_value_length(column), 0)
        ends = np.cumsum(lengths.to_numpy(zero_copy_only=False), dtype=np.int64)
        return cls(pairs.field("key"), pairs.field("value"), ends)

    @property
    def lengths(self) -> Numbers:
        """The number of headers of each record."""
        return np.diff(self.ends, prepend=0)

    @property
    def owners(self) -> Numbers:
        """The record of each header."""
        return np.repeat(np.arange(len(self.ends)), self.lengths)

    def named(self, name: str) -> Mask:
        """Tell which headers have a name."""
        return mask_of(pc.equal(self.names, name))

    def beginning_with(self, prefix: str) -> Mask:
        """Tell the names of which headers begin with a prefix."""
        return mask_of(pc.starts_with(self.names, prefix))


def mask_of(column: pa.Array) -> Mask:
    """Return an Arrow column of booleans as a mask; null is false."""
    mask: Mask = pc.fill_null(column, False).to_numpy(zero_copy_only=False)
    return mask


def each_value(column: pa.Array, of: Callable[[Any], Any], type: pa.DataType) -> pa.Array:
    """Return a function of each value of a column, called once for each different one; null stays null."""
    encoded = column.dictionary_encode()
    return pa.array(map(of, encoded.dictionary.to_pylist()), type).take(encoded.indices)
