"""Which fields and headers are masked."""

from __future__ import annotations

import json

import pytest

from light_scheduler.payloads.masks import MASK, Masks


def masked(fields: str, value: object) -> object:
    """Return a value with the fields of a setting masked."""
    return json.loads(Masks(fields.split(",")).masked(json.dumps(value).encode()))


@pytest.mark.parametrize(
    ("fields", "hidden"),
    [
        ("password", ["password", "user.password", "cards.password"]),
        ("PassWord", ["password", "user.password", "cards.password"]),
        ("pass*", ["password", "user.password", "cards.password"]),
        ("user", ["user"]),
        ("user.password", ["user.password"]),
        ("*.password", ["user.password", "cards.password"]),
        ("cards.*", ["cards.number", "cards.password"]),
        ("a.user.password", []),
        ("assword", []),
        ("number,user.password", ["user.password", "cards.number"]),
    ],
)
def test_a_name_counts_at_any_depth_and_a_path_from_the_outermost_object(fields: str, hidden: list[str]) -> None:
    value: dict[str, object] = {
        "password": 1,
        "user": {"password": [2], "age": 3},
        "cards": [{"number": 4}, {"password": None}],
    }
    found = masked(fields, value)
    assert isinstance(found, dict)
    cards = found["cards"]
    seen = {
        "password": found["password"],
        "user": found["user"],
        "user.password": found["user"]["password"] if isinstance(found["user"], dict) else None,
        "user.age": found["user"]["age"] if isinstance(found["user"], dict) else None,
        "cards.number": cards[0]["number"],
        "cards.password": cards[1]["password"],
    }
    assert [place for place, at in seen.items() if at == MASK] == hidden


def test_a_dot_in_a_name_separates_as_in_a_path() -> None:
    assert masked("user.email", {"user.email": 1, "other.email": 2}) == {"user.email": MASK, "other.email": 2}
    assert masked("email", {"user.email": {"a": 1}}) == {"user.email": MASK}


def test_the_outermost_value_may_be_of_any_kind() -> None:
    assert masked("a.b", [[{"a": {"b": 1}}], {"a": [{"b": 2}]}]) == [[{"a": {"b": MASK}}], {"a": [{"b": MASK}]}]
    assert masked("a", [None, 5, "a", []]) == [None, 5, "a", []]
    assert Masks(["a"]).masked(b'"a"') == b'"a"'


def test_all_else_stays_as_it_was_sent() -> None:
    sent = b'{"n":12345678901234567,"x":0.10000000000000000555,"t":"<b>\xc3\xa9","p":1}'
    assert Masks(["p"]).masked(sent) == sent.replace(b":1}", b':"********"}')


def test_the_last_of_a_repeated_key_is_masked_too() -> None:
    assert Masks(["a"]).masked(b'{"a":"x","a":"y"}') == b'{"a":"********"}'


@pytest.mark.parametrize("sent", [b"", b"{", b"\xff", b"{'a': 1}", b'{"a":NaN}'])
def test_what_is_no_json_is_refused(sent: bytes) -> None:
    with pytest.raises(ValueError, match=r"."):
        Masks(["a"]).masked(sent)


def test_json_that_is_nested_too_deeply_is_refused() -> None:
    with pytest.raises(RecursionError):
        Masks(["a"]).masked(b"[" * 100_000 + b"]" * 100_000)


def test_headers_are_masked_by_their_whole_names() -> None:
    masks = Masks(["authorization", "x-*", "trace.id"])
    names = ["Authorization", "x-a", "trace.id", "x", "trace", "id"]
    assert [name for name in names if masks.hides_header(name)] == ["Authorization", "x-a", "trace.id"]
    assert (bool(masks), bool(Masks([]))) == (True, False)
