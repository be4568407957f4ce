"""Checks that a load does not write into the folder that it reads, since it would load those files, too.

A continuous load would refuse what it has just refused, and so on. Names that begin with `.`, or with `_` without a
`=`, are not read. Conversely, the table that is read must not be inside the table of refused rows, which the load
replaces: it would be deleted.
"""

from __future__ import annotations

import os
import posixpath
import re
from collections.abc import Mapping
from typing import NamedTuple

from light_scheduler.errors import JobError
from light_scheduler.pipeline.globs import expanded, name_pattern

_WHOLE = re.compile(r"(?:(?P<scheme>[a-z][a-z0-9+.-]*):(?://(?P<host>[^/]*))?)?(?P<path>.*)", re.DOTALL | re.IGNORECASE)
_ALIKE = {"s3": "s3a", "s3n": "s3a", "abfs": "abfss", "wasb": "wasbs"}
"""Schemes that are other names for the same files."""
_DEFAULT = ("", "file", "hdfs", "viewfs")
"""Possible meanings of a path without a scheme, depending on Hadoop's configuration."""


def require_apart(table: str, written: Mapping[str, str], replaced: str | None = None) -> None:
    """Raise JobError if an absolute path in `written`, by option or setting, would be read with the table, or if the
    table is inside the folder that is `replaced`, which is one of those options."""
    for option, path in written.items():
        if is_read_with(_resolved(path), _resolved(table)):
            raise JobError(
                f"{option} {path} is in the folder that is loaded, {table}, so its files would be loaded, too: give "
                "a path outside of it"
            )
        if option == replaced and holds(_resolved(path), _resolved(table)):
            raise JobError(
                f"{option} {path} has the folder that is loaded in it, {table}, which would be deleted: the load "
                "replaces what is at that path. Give a path of its own"
            )


def is_read_with(path: str, folder: str) -> bool:
    """Return whether a reader of a folder, or of a pattern of folders, reads files at a path."""
    inner = _Place.of(path)
    return any(map(inner.is_read_with, map(_Place.of, expanded(folder))))


def holds(path: str, folder: str) -> bool:
    """Return whether a folder, or one that matches a pattern, is below a path."""
    outer = _Place.of(path)
    return any(outer.holds(_Place.of(each)) for each in expanded(folder))


class _Place(NamedTuple):
    """A path: its scheme and host, normalised so that the same files are written alike, and its names."""

    scheme: str
    host: str
    names: tuple[str, ...]

    @classmethod
    def of(cls, path: str) -> _Place:
        whole = _WHOLE.fullmatch(path)
        assert whole is not None, "anything is a path"
        scheme = (whole["scheme"] or "").lower()
        host = "" if scheme == "file" else (whole["host"] or "").lower()
        plain = posixpath.normpath(f"/{whole['path']}")
        return cls(_ALIKE.get(scheme, scheme), host, tuple(name for name in plain.split("/") if name))

    def is_read_with(self, folder: _Place) -> bool:
        below = self.names[len(folder.names) :]
        return len(self.names) >= len(folder.names) and self._meets(folder) and not any(map(_is_hidden, below))

    def holds(self, folder: _Place) -> bool:
        return len(self.names) < len(folder.names) and self._meets(folder)

    def _meets(self, folder: _Place) -> bool:
        """Return whether one of the two paths may be below the other one; `folder` is a pattern."""
        same = all(name_pattern(wanted).fullmatch(name) for wanted, name in zip(folder.names, self.names, strict=False))
        return same and self._may_be_beside(folder)

    def _may_be_beside(self, other: _Place) -> bool:
        """Return whether two paths may be in the same file system."""
        if self.scheme != other.scheme:
            return "" in (self.scheme, other.scheme) and {self.scheme, other.scheme} <= {*_DEFAULT}
        if "" in (self.host, other.host):  # the default host of its scheme, which may be the other one
            return True
        (one, colon, _), (another, also, _) = self.host.rpartition(":"), other.host.rpartition(":")
        # A port may be omitted.
        return self.host == other.host or (not (colon and also) and (one or self.host) == (another or other.host))


def _is_hidden(name: str) -> bool:
    return name.startswith(".") or (name.startswith("_") and "=" not in name)


def _resolved(path: str) -> str:
    """Return a local path without symbolic links."""
    whole = _WHOLE.fullmatch(path)
    if whole is None or (whole["scheme"] or "file").lower() != "file":
        return path
    return os.path.realpath(f"/{whole['path'].lstrip('/')}")
