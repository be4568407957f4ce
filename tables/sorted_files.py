"""Files of rows in key order (SST files), which RocksDB takes in as they are.

Rows that are written one by one go into a table in memory, from there into a file, and on into the files of lower
levels. A file that is made here is linked into the lowest level in which nothing overlaps with it. To sort many rows
and to finish a file, which waits for the disk, are single steps.
"""

from __future__ import annotations

from collections.abc import Iterator
from operator import itemgetter
from pathlib import Path

from rocksdict import IngestExternalFileOptions, Options, Rdict, SstFileWriter

from .store import Loaded

STEP_ROWS = 8_000
"""Rows that are added to a file in one step."""


def write_sorted(path: Path, rows: Loaded, options: Options) -> Iterator[None]:
    """Make a file of rows, at least one, in steps. They are sorted where they are."""
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
    """Add the rows of files to a database, all or none; the files are gone then."""
    options = IngestExternalFileOptions()
    options.set_move_files(True)
    db.ingest_external_file([str(path) for path in paths], options)
