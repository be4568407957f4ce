"""Names of files as Spark writes them in rows."""

from __future__ import annotations

HERE = "^file:/+"
"""Regular expression for the beginning of local paths in Spark, which have one slash or three."""
