"""Logins in URLs: detects them, and removes them for errors and logs."""

from __future__ import annotations

import re

_LOGIN = re.compile(r"^(\s*[a-z][a-z0-9+.-]*://)?.*@", re.DOTALL | re.IGNORECASE)
"""Everything up to the last @: in a malformed URL, a password may contain a slash."""
_PASSWORD = re.compile(r"^[^:/?#]+://[^:/]*:[^@]+@|[?&](ssl)?pass(word|wd)?=[^&]", re.IGNORECASE)


def without_login(url: str) -> str:
    """Return a URL, possibly malformed, without user and password."""
    return _LOGIN.sub(r"\1", url)


def has_login(url: str) -> bool:
    """Return whether a URL may contain a user or a password."""
    return "@" in url


def has_password(url: str) -> bool:
    """Return whether a database URL contains a password, before its host or as a parameter."""
    return _PASSWORD.search(url) is not None
