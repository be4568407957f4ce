"""Files by the names that Spark has for them in rows."""

from __future__ import annotations

HERE = "^file:/+"
"""How Spark begins the paths of files of this machine, as a regular expression: with one slash, or with three."""
