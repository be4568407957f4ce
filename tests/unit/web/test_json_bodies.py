"""JSON bodies of requests as types."""

from __future__ import annotations

import msgspec
import pytest

from light_scheduler.web.forms.json_bodies import read_json


class Body(msgspec.Struct, forbid_unknown_fields=True):
    whole: int | None = None
    rate: float | None = None


@pytest.mark.parametrize("text", ["88", "88.0", "8.8e1", "880e-1"])
def test_a_number_without_a_fraction_is_a_whole_number_however_it_is_written(text: str) -> None:
    body = read_json(b'{"whole": %s, "rate": %s}' % (text.encode(), text.encode()), Body)
    assert (body, type(body.whole), type(body.rate)) == (Body(88, 88.0), int, float)


def test_a_rate_keeps_its_fraction() -> None:
    assert read_json(b'{"rate": 0.125}', Body) == Body(None, 0.125)


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ('{"whole": 88.5}', "Expected `int | null`, got `float` - at `$.whole`"),
        ('{"whole": "88"}', "Expected `int | null`, got `str` - at `$.whole`"),
        ('{"whole": true}', "Expected `int | null`, got `bool` - at `$.whole`"),
        ('{"whole": 1e999}', "got `float`"),
        ('{"whole": 1e300}', "got `float` - at `$.whole`"),
        ('{"whole": %s}' % ("9" * 5_000), "at `$.whole`"),
        ('{"other": 1}', "unknown field `other`"),
        ("[]", "Expected `object`, got `array`"),
        ("{", "truncated"),
        ("\x00", "malformed"),
        ('{"whole": ' + "[" * 100_000, "nested too deeply"),
    ],
)
def test_what_is_no_such_body_is_refused_with_the_place(text: str, reason: str) -> None:
    with pytest.raises(ValueError, match=r".") as caught:
        read_json(text.encode(), Body)
    assert reason in str(caught.value)


def test_what_is_no_text_is_refused() -> None:
    with pytest.raises(ValueError, match=r"UTF-8|utf-8"):
        read_json(b'{"whole": "\xff"}', Body)
