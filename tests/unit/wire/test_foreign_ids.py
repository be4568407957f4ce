from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from light_scheduler.wire.dialects.reading import id_of, key_of


@given(st.binary(min_size=1) | st.binary().map(lambda rest: b"base64:" + rest))
def test_every_key_is_an_id_of_its_own_and_comes_back(key: bytes) -> None:
    id = id_of(key)
    if id is None:
        assert not key.strip()
    else:
        assert id.isprintable() or id == key.decode()
        assert key_of(id) == key


@given(
    st.text(min_size=1, alphabet=st.characters(exclude_categories=["Cs"]))
    | st.text("base64:=/w").map("base64:".__add__)
)
def test_every_id_has_a_key(id: str) -> None:
    assert key_of(id)
