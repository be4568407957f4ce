"""The pattern of a CSV row in which all quotes are closed, depending on the options of Spark's reader."""

from __future__ import annotations

import re
from collections.abc import Mapping

QUOTE = '"'
NONE = ("", "\0")
"""Values that disable a special character."""

_ESCAPED = {"t": "\t", "r": "\r", "b": "\b", "f": "\f"}


def row_pattern(reading: Mapping[str, str], *, has_breaks: bool = False) -> str:
    """Return the regular expression, valid in Java and Python, of a row in which all quotes are closed.

    A cell is quoted; or does not begin with a quote; or has text after quotes that contain neither a separator nor a
    line break, which Spark also takes for text. Outside of quotes, it has line breaks only if the row `has_breaks`, or
    if the reader is told how rows end. No part is tried more than twice, however long the row is.
    """
    options = lowered(reading)
    quote, sep = re.escape(options.get("quote", QUOTE)), re.escape(_separator(options))
    line = re.escape(options.get("linesep", ""))
    end = rf"(?:{line}|\r)?(?![\s\S])"
    any = r"[\s\S]" if has_breaks or line else r"[^\r\n]"
    escape = options.get("escape", QUOTE)
    escape = quote if escape in NONE else re.escape(escape)
    blank = rf"(?:(?!{sep})[ \t\r])*+"
    after = rf"(?:(?!{sep})[\x00-\x09\x0b-\x20])*+"  # Spark skips these
    before = blank if options.get("ignoreleadingwhitespace", "false").lower() == "true" else ""
    escaped = "" if escape == quote else rf"{escape}[\s\S]|"
    quoted = rf"{before}{quote}(?:[^{quote}{escape}]++|{escaped}{quote}{quote})*+{quote}{after}"
    plain = rf"(?!{before}{quote})(?:(?!{sep}){any})*+"
    begun = rf"{before}{quote}(?:(?!{sep})[^{quote}{escape}\r\n])*+{quote}{plain}"
    # Each alternative must reach the end of the cell, so that one that ends too early gives way to the next.
    cell = rf"(?:{quoted}(?={sep}|{end})|{begun}|{plain})"
    comment = options.get("comment", "")
    skipped = rf"[\r\n]|{line}" if line else r"[\r\n]"
    skipped = skipped if comment in NONE else rf"{skipped}|{re.escape(comment)}[^\n]*+\n"
    return rf"^(?:{skipped})*+{cell}(?:{sep}{cell})*+{end}"


def _separator(options: Mapping[str, str]) -> str:
    text = options.get("sep", options.get("delimiter", ","))
    return re.sub(r"\\(.)", lambda found: _ESCAPED.get(found[1], found[1]), text)


def lowered(reading: Mapping[str, str]) -> dict[str, str]:
    """Return the options of a reader with names in lower case."""
    return {name.lower(): value for name, value in reading.items()}
