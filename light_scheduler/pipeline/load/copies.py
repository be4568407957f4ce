"""Copies: files with the rows of another file of the same load, under another name.

Concurrent tasks do not see each other's marks before they have sent their rows. So copies are loaded after the other
files, when the marks of their rows exist. Only files of the same size are compared, by the sum of the hashes of their
rows. A file that is wrongly taken for a copy is merely loaded later.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Sequence
from urllib.parse import unquote

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F  # noqa: N812 (everybody's name for it)

from light_scheduler.pipeline.globs import without_globs

from .few_tasks import in_few_tasks, listing_in_few_tasks

_SAID = "_said"


def copies(rows: DataFrame, said: Sequence[str], files: Sequence[str]) -> list[str]:
    """Return the files that have the same rows as an earlier one, in the columns `said`.

    Rows have the column `_file`: its values and `files` are paths as in `_metadata.file_path`.
    """
    by_size = _by_size(rows.sparkSession, files)
    alike = [each for same in by_size.values() for each in same]
    if not alike:
        return []
    read = sum(size * len(same) for size, same in by_size.items())
    row = F.to_json(F.struct(*(f"`{name}`" for name in said)))
    hashed = rows.where(F.col("_file").isin(alike)).select("_file", F.xxhash64(row).alias(_SAID))
    total = F.sum(F.col(_SAID).cast("decimal(38,0)")).alias("total")
    found = in_few_tasks(hashed, read).groupBy("_file").agg(F.count("*").alias("rows"), total).collect()
    return later_ones((row["_file"], (row["rows"], row["total"])) for row in found)


def later_ones(files: Iterable[tuple[str, object]]) -> list[str]:
    """Return the names of the files whose content an earlier file already has. `files` are pairs of name and
    content."""
    by_content = defaultdict[object, list[str]](list)
    for file, content in files:
        by_content[content].append(file)
    return sorted(file for same in by_content.values() for file in sorted(same)[1:])


def _by_size(spark: SparkSession, files: Sequence[str]) -> dict[int, list[str]]:
    """Return the files by size (bytes), for sizes that several of them have."""
    if len(files) < 2:
        return {}
    paths = [without_globs(unquote(file)) for file in files]
    # Only their sizes are read.
    with listing_in_few_tasks(spark):
        sizes = spark.read.format("binaryFile").load(paths).select("_metadata.file_path", "_metadata.file_size")
        found = in_few_tasks(sizes).collect()
    by_size = defaultdict[int, list[str]](list)
    for file, size in found:
        by_size[size].append(file)
    return {size: same for size, same in by_size.items() if len(same) > 1}
