"""The headers of many records, in flat arrays."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import cached_property
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

Mask = np.ndarray[Any, np.dtype[np.bool_]]
Numbers = np.ndarray[Any, np.dtype[np.int64]]


class HeaderLists:
    """`codes` (places in `known`, the different names) and `values` (bytes or null) of all headers, in order.

    Those of record i end before `ends[i]`.
    """

    def __init__(self, codes: Numbers, known: Sequence[str], values: pa.Array, ends: Numbers) -> None:
        self.codes = codes
        self.known = known
        self.values = values
        self.ends = ends

    @classmethod
    def of(cls, column: pa.ListArray) -> HeaderLists:
        """Flatten a column of lists of (key, value); a null list has no headers."""
        pairs = column.flatten()
        lengths = pc.fill_null(pc.list_value_length(column), 0)
        names = pairs.field("key").dictionary_encode()
        ends = np.cumsum(lengths.to_numpy(zero_copy_only=False), dtype=np.int64)
        return cls(names.indices.to_numpy(), names.dictionary.to_pylist(), pairs.field("value"), ends)

    @cached_property
    def lengths(self) -> Numbers:
        """The number of headers of each record."""
        return np.diff(self.ends, prepend=0)

    @cached_property
    def owners(self) -> Numbers:
        """The record of each header."""
        return np.repeat(np.arange(len(self.ends)), self.lengths)

    def named(self, name: str, at: Numbers | None = None) -> Mask:
        """Tell which headers have a name, of all or of those at some places."""
        code = self.known.index(name) if name in self.known else -1
        is_named: Mask = (self.codes if at is None else self.codes[at]) == code
        return is_named

    def beginning_with(self, prefix: str) -> Mask:
        """Tell the names of which headers begin with a prefix."""
        meant = [code for code, name in enumerate(self.known) if name.startswith(prefix)]
        return np.isin(self.codes, meant)

    def each_name(self, of: Callable[[str], Any], type: pa.DataType) -> pa.Array:
        """Return a function of the name of each header."""
        return pa.array(map(of, self.known), type).take(pa.array(self.codes))


def mask_of(column: pa.Array) -> Mask:
    """Return an Arrow column of booleans as a mask; null is false."""
    mask: Mask = pc.fill_null(column, False).to_numpy(zero_copy_only=False)
    return mask


def each_value(column: pa.Array, of: Callable[[Any], Any], type: pa.DataType) -> pa.Array:
    """Return a function of each value of a column, called once for each different one; null stays null."""
    encoded = column.dictionary_encode()
    return pa.array(map(of, encoded.dictionary.to_pylist()), type).take(encoded.indices)
