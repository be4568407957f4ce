"""Files that are there whole or not at all: whoever is killed while making one leaves nothing in its place."""

from __future__ import annotations

import shutil
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path


@contextmanager
def whole(path: Path) -> Iterator[Path]:
    """Give a path, in an empty folder, at which to make a file or a folder. What is there when the context ends without
    an error replaces `path`.
    """
    path.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(prefix=f".{path.name}-", dir=path.parent) as folder:
        made = Path(folder, path.name)
        yield made
        if made.is_dir() and path.is_dir():
            shutil.rmtree(path)
        if made.exists():
            made.replace(path)
