"""Jars of others from Maven Central, each pinned by the SHA-256 of its content."""

from __future__ import annotations

import hashlib
import shutil
from dataclasses import dataclass
from pathlib import Path

from .whole import whole


@dataclass(frozen=True)
class PinnedJar:
    """A jar by its Maven coordinates; `folder` is where it is put."""

    group: str
    name: str
    version: str
    sha256: str
    folder: Path

    @property
    def path(self) -> Path:
        return self.folder / f"{self.name}-{self.version}.jar"

    @property
    def is_there(self) -> bool:
        """Whether it is there, whole."""
        return self._is(self.path)

    def fetch(self) -> None:
        """Download it, unless it is there. Raises RuntimeError or OSError if it cannot be had."""
        if self.is_there:
            return
        cached = self._resolved()
        if not self._is(cached):  # a download that was killed leaves its part in Maven's cache
            cached.unlink()
            cached = self._resolved()
        if not self._is(cached):
            raise RuntimeError(
                f"{cached} is not the jar that was pinned: delete it and try again, or ask who changed it"
            )
        with whole(self.path) as made:
            shutil.copy(cached, made)

    def _is(self, path: Path) -> bool:
        return path.exists() and hashlib.sha256(path.read_bytes()).hexdigest() == self.sha256

    def _resolved(self) -> Path:
        from jgo.maven import MavenContext

        return Path(MavenContext().project(self.group, self.name).at_version(self.version).artifact().resolve())
