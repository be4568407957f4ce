"""Spark's own Kafka connector is there when all of its jars are, whole."""

from __future__ import annotations

from hashlib import sha256
from pathlib import Path

import pytest
from support import spark_kafka
from support.pinned_jar import PinnedJar
from support.spark_kafka import jars


def test_a_jar_that_was_copied_in_part_is_not_there(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    content = {name: f"the jar {name}".encode() for name in ("a", "b")}
    pinned = [PinnedJar("group", name, "1", sha256(whole).hexdigest(), tmp_path) for name, whole in content.items()]
    monkeypatch.setattr(spark_kafka, "PINNED", pinned)
    assert jars() == ()
    for jar in pinned:
        jar.path.write_bytes(content[jar.name])
    assert jars() == (tmp_path / "a-1.jar", tmp_path / "b-1.jar")
    pinned[1].path.write_bytes(content["b"][:-1])
    assert jars() == ()
