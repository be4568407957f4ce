"""Data as YAML that readers of version 1.1 and 1.2 understand in the same way."""

from __future__ import annotations

import re
from typing import Any

import yaml

_PLAIN = re.compile(r"[A-Za-z_/][^\n]*")
_BOOLEANS = frozenset({"y", "n", "Y", "N"})
_ANY_WIDTH = 2**31 - 1
_Base: Any = getattr(yaml, "CSafeDumper", yaml.SafeDumper)


class _Dumper(_Base):  # type: ignore[misc]
    """Quotes texts that could be numbers: 1e3 is a number only in version 1.2."""


def _text(dumper: Any, text: str) -> Any:
    is_plain = _PLAIN.fullmatch(text) is not None and text not in _BOOLEANS
    return dumper.represent_scalar("tag:yaml.org,2002:str", text, style=None if is_plain else '"')


_Dumper.add_representer(str, _text)


def yaml_text(document: object) -> str:
    """Return a JSON-like document as YAML, without the final newline."""
    text: str = yaml.dump(document, Dumper=_Dumper, sort_keys=False, allow_unicode=True, width=_ANY_WIDTH)
    return text.removesuffix("\n").removesuffix("\n...")
