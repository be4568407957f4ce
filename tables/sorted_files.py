"""Files of rows in key order (SST files), which RocksDB ingests.

Rows that are written normally go to a memtable, then to a file, then to the files of lower levels. A file made here is
linked into the lowest level without overlaps. Sorting the rows is a single step, and so is finishing a file, which
waits for the disk.
"""

from __future__ import annotations

from collections.abc import Iterator
from operator import itemgetter
from pathlib import Path

from rocksdict import IngestExternalFileOptions, Options, Rdict, SstFileWriter

from .store import Loaded

STEP_ROWS = 8_000
"""Rows added to a file in one step."""


def write_sorted(path: Path, rows: Loaded, options: Options) -> Iterator[None]:
    """Write rows, at least one, to a file in steps. Sorts `rows` in place."""
    rows.sort(key=itemgetter(0))
    yield
    writer = SstFileWriter(options)
    writer.open(str(path))
    for start in range(0, len(rows), STEP_ROWS):
        for key, value in rows[start : start + STEP_ROWS]:
            writer[key] = value
        yield
    writer.finish()


def take_in(db: Rdict, paths: list[Path]) -> None:
    """Add the rows of files to a database, all or none. The files are moved."""
    options = IngestExternalFileOptions()
    options.set_move_files(True)
    db.ingest_external_file([str(path) for path in paths], options)
