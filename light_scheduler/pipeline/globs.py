"""Path patterns in Hadoop's syntax: `*`, `?`, `[ab]`, `[a-b]`, `[^a]`, `{one,other}` and, before one of these
characters, a backslash. Libraries implement shell patterns, in which `**` and `!` have other meanings."""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import cache

from light_scheduler.errors import JobError

_TOKEN = re.compile(
    r"\\(?P<literal>.)|(?P<any>\*)|(?P<one>\?)"
    r"|\[(?P<not>[\^!]?+)(?P<set>(?:\\.|[^\\])(?:\\.|[^\]\\])*)\]|(?P<plain>.)",
    re.DOTALL,
)
"""The first character of a set is always a member, even `]`."""
_MEMBER = re.compile(r"(?P<first>\\.|.)(?:-(?P<last>\\.|.))?", re.DOTALL)
_IN_SET = {"*": ".*", "?": "."}
"""Hadoop replaces these characters before it parses sets."""

_HOW_ESCAPED = r"Write a backslash before each of *?[]{},\ that is part of a name, and before no letter or digit"

_GLOBS = re.compile(r"[\\*?{}\[\]]")


def is_pattern(path: str) -> bool:
    """Return whether a path has characters that make it a pattern."""
    return _GLOBS.search(path) is not None


def without_globs(path: str) -> str:
    """Return a path escaped for Spark's readers, which would interpret braces, brackets and the like as a pattern."""
    return _GLOBS.sub(r"\\\g<0>", path)


def require_pattern(path: str) -> None:
    """Raise JobError if Hadoop cannot parse the path of a table as a pattern, or would interpret it differently."""
    try:
        for token in _TOKEN.finditer(path):
            _require_plain_set(token)
        for each in expanded(path):
            for name in each.split("/"):
                name_pattern(name)
    except JobError as error:
        raise JobError(f"the table {path} is a pattern that cannot be read: {error}") from error


def expanded(pattern: str) -> Iterator[str]:
    """Yield the patterns without braces that a pattern expands to."""
    found = _braces(pattern)
    if found is None:
        yield pattern
        return
    begin, end = found
    for choice in _choices(pattern[begin + 1 : end]):
        yield from expanded(pattern[:begin] + choice + pattern[end + 1 :])


@cache
def name_pattern(pattern: str) -> re.Pattern[str]:
    """Return the regular expression for names that match a pattern without braces.

    Raises JobError as `require_pattern`.
    """
    return re.compile("".join(_said(token) for token in _TOKEN.finditer(pattern)), re.DOTALL)


def _said(token: re.Match[str]) -> str:
    if token["any"]:
        return ".*"
    if token["one"]:
        return "."
    if token["set"] is not None:
        return ("[^" if token["not"] else "[") + _members(token["set"]) + "]"
    if token["literal"]:
        return re.escape(_character(token[0]))
    if token["plain"] in ("[", "{"):
        closing = {"[": "]", "{": "}"}[token["plain"]]
        raise JobError(
            f"a {token['plain']} in it has no {closing}, or a comma before it in braces. {_HOW_ESCAPED}. Write "
            "[ab] for [a,b]"
        )
    if token["plain"] == "\\":
        raise JobError(f"it, or a name in it, ends with a backslash. {_HOW_ESCAPED}")
    return re.escape(token["plain"])


def _members(text: str) -> str:
    """Convert the characters and ranges of a set to regular expression syntax."""
    said = []
    for member in _MEMBER.finditer(re.sub(r"\\.|[*?]", lambda found: _IN_SET.get(found[0], found[0]), text)):
        first = _character(member["first"])
        last = first if member["last"] is None else _character(member["last"])
        if last < first:
            begin, end = member["first"], member["last"]
            raise JobError(
                f"its range {member[0]} begins after its end. Write {end}-{begin}, or, for three characters, "
                f"{begin}\\-{end}"
            )
        said.append(f"{re.escape(first)}-{re.escape(last)}")
    return "".join(said)


def _character(text: str) -> str:
    """Return a character without its optional backslash."""
    if len(text) > 1 and (text[1].isalnum() or not text[1].isascii()):
        raise JobError(f"{text} in it is no character that needs a backslash. {_HOW_ESCAPED}")
    return text[-1]


def _require_plain_set(token: re.Match[str]) -> None:
    found = re.search(r"[\[{}]", re.sub(r"\\.", "", token["set"] or "", flags=re.DOTALL))
    if found:
        raise JobError(f"the set {token[0]} has a {found[0]} in it. {_HOW_ESCAPED}")


def _braces(pattern: str) -> tuple[int, int] | None:
    """Return the start and the end of the first pair of braces; None if there is none."""
    begin, depth, place = -1, 0, 0
    while place < len(pattern):
        character = pattern[place]
        if character == "\\":
            place += 1
        elif character == "{":
            begin, depth = (place if depth == 0 else begin), depth + 1
        elif character == "}" and depth:
            depth -= 1
            if depth == 0:
                return begin, place
        place += 1
    return None


def _choices(text: str) -> Iterator[str]:
    """Yield the parts between commas outside of braces."""
    begin, depth, place = 0, 0, 0
    while place < len(text):
        character = text[place]
        if character == "\\":
            place += 1
        elif character in "{}":
            depth += 1 if character == "{" else -1
        elif character == "," and depth == 0:
            yield text[begin:place]
            begin = place + 1
        place += 1
    yield text[begin:]
