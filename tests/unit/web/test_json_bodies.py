"""JSON bodies of requests as types."""

from __future__ import annotations

import re

import msgspec
import pytest

from light_scheduler.web.forms.json_bodies import BodyError, read_json


class Body(msgspec.Struct, forbid_unknown_fields=True):
    whole: int | None = None
    rate: float | None = None
    names: list[str] | None = None


@pytest.mark.parametrize("text", ["88", "88.0", "8.8e1", "880e-1"])
def test_a_number_without_a_fraction_is_a_whole_number_however_it_is_written(text: str) -> None:
    body = read_json(b'{"whole": %s, "rate": %s}' % (text.encode(), text.encode()), Body)
    assert (body, type(body.whole), type(body.rate)) == (Body(88, 88.0), int, float)


def test_a_rate_keeps_its_fraction() -> None:
    assert read_json(b'{"rate": 0.125}', Body) == Body(None, 0.125)


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ('{"whole": 88.5}', "whole: must be a whole number or null, not 88.5"),
        ('{"whole": "88"}', 'whole: must be a whole number or null, not "88"'),
        ('{"whole": true}', "whole: must be a whole number or null, not true"),
        ('{"whole": 1e999}', "whole: must be a whole number or null, not 1e999"),
        ('{"whole": 1e300}', "whole: must be a whole number or null, not 1e300"),
        ('{"whole": %s}' % ("9" * 5_000), f"whole: must be a whole number or null, not {'9' * 100}..."),
        ('{"names": ["a", 1]}', 'names: must be an array of texts or null, not ["a", 1]'),
        ('{"wole": 1}', "wole: is not known; did you mean whole? Members: whole, rate, names"),
        ('{"other": 1}', "other: is not known. Members: whole, rate, names"),
        ("[]", "body: must be a JSON object"),
        ("{", "body: is not JSON: Input data was truncated"),
        ("\x00", "body: is not JSON: JSON is malformed"),
        ('{"whole": ' + "[" * 100_000, "body: is nested too deeply"),
    ],
)
def test_what_is_no_such_body_is_refused_with_the_member(text: str, reason: str) -> None:
    with pytest.raises(BodyError, match=f"^{re.escape(reason)}") as caught:
        read_json(text.encode(), Body)
    assert str(caught.value).startswith(f"{caught.value.field}: ")


def test_a_member_that_is_missing_is_named() -> None:
    class Named(msgspec.Struct):
        name: str

    with pytest.raises(BodyError, match=r"^name: is required$"):
        read_json(b"{}", Named)


@pytest.mark.parametrize(("text", "member"), [(b'{"whole": "\xff"}', "whole"), (b'{"\xff": 1}', "body")])
def test_what_is_no_text_is_refused(text: bytes, member: str) -> None:
    with pytest.raises(BodyError, match=rf"^{member}: .*utf-8"):
        read_json(text, Body)
