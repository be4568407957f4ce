"""What a load writes is nothing that it reads."""

from __future__ import annotations

from pathlib import Path

import pytest

from light_scheduler.errors import JobError
from light_scheduler.pipeline.load.places import holds, is_read_with, require_apart


@pytest.mark.parametrize(
    ("path", "is_read"),
    [
        ("/data/in", True),
        ("file:///data/in/", True),
        ("/data/in/refused", True),
        ("/data/in/day=1/refused", True),
        ("/data/in/_refused", False),
        ("/data/in/_day=1/refused", True),
        ("/data/other/../in/refused", True),
        ("/data/in/../refused", False),
        ("/data/in/.state/refused", False),
        ("/data/in-refused", False),
        ("/data", False),
        ("s3a://bucket/data/in/refused", False),
    ],
)
def test_a_reader_of_a_folder_reads_what_is_in_it_unless_it_is_hidden(path: str, is_read: bool) -> None:
    assert is_read_with(path, "/data/in") is is_read
    assert is_read_with(f"s3a://bucket{path}", "s3a://bucket/data/in") is (is_read and not path.startswith("file:"))


def test_the_option_is_named() -> None:
    require_apart("/data/in", {"--refused": "/data/refused"})
    with pytest.raises(JobError, match=r"^--checkpoint /data/in/state is in the folder that is loaded, /data/in,"):
        require_apart("/data/in", {"--refused": "/data/refused", "--checkpoint": "/data/in/state"})


@pytest.mark.parametrize(
    ("path", "folder", "is_read"),
    [
        ("/data/in/day=1/refused", "/data/in/day=*", True),
        ("/data/in/refused", "/data/in/day=*", False),
        ("/data/in/a/refused", "/data/*/a", True),
        ("/data/in/_refused", "/data/in/*", True),
        ("/data/in/_refused/more", "/data/i?", False),
        ("/data/in-2/refused", "/data/in-[13]", False),
        ("/data/in-2/refused", "/data/in-[1-3]", True),
        ("/data/in-2/refused", "/data/in-[^1-3]", False),
        ("/data/b/c/refused", "/data/{a,b/{c,d}}", True),
        ("/data/b/refused", "/data/{a,b/{c,d}}", False),
        ("/data/inn/refused", "/data/in", False),
        ("/data/in*/refused", r"/data/in\*", True),
        ("/data/ins/refused", r"/data/in\*", False),
        ("/data/in.x/refused", "/data/in.*", True),
        ("/data/in-x/refused", "/data/in.*", False),
        ("/data/in--/refused", r"/data/in-[a\-z]", True),
        ("/data/in-m/refused", r"/data/in-[a\-z]", False),
        (r"/data/in-\/refused", r"/data/in-[a\-z]", False),
        ("/data/in-]/refused", r"/data/in-[\]]", True),
        ("/data/in-]/refused", "/data/in-[]a]", True),
        ("/data/in-]/refused", "/data/in-[^]a]", False),
        ("/data/in-^/refused", "/data/in-[a^]", True),
        ("/data/in--/refused", "/data/in-[+--]", True),
    ],
)
def test_a_reader_of_a_pattern_reads_what_is_in_each_folder_that_it_matches(
    path: str, folder: str, is_read: bool
) -> None:
    assert is_read_with(path, folder) is is_read


@pytest.mark.parametrize(
    ("one", "other", "is_same"),
    [
        ("file://localhost/data", "/data", True),
        ("file://localhost/data", "file:/data", True),
        ("FILE:///data", "/data", True),
        ("hdfs://node/data", "hdfs://node:8020/data", True),
        ("hdfs://NODE:8020/data", "hdfs://node:8020/data", True),
        ("hdfs://node:8020/data", "hdfs://node:9000/data", False),
        ("hdfs://node/data", "hdfs://another/data", False),
        ("hdfs:///data", "hdfs://node:8020/data", True),
        ("/data", "hdfs://node:8020/data", True),
        ("file:///data", "hdfs://node:8020/data", False),
        ("/data", "s3a://bucket/data", False),
        ("s3://bucket/data", "s3a://bucket/data", True),
        ("s3a://bucket/data", "s3a://another/data", False),
    ],
)
def test_the_same_files_are_known_by_each_way_to_write_their_host(one: str, other: str, is_same: bool) -> None:
    for path, folder in ((one, other), (other, one)):
        assert is_read_with(f"{path}/refused", folder) is is_same


@pytest.mark.parametrize(
    ("path", "folder", "is_held"),
    [
        ("/data", "/data/in", True),
        ("/", "/data/in", True),
        ("file://localhost/data", "/data/in/*.csv", True),
        ("/data/a", "/data/*/in", True),
        ("/data/in", "/data/in", False),
        ("/data/in-refused", "/data/in", False),
        ("/other", "/data/in", False),
        ("s3a://bucket/data", "/data/in", False),
    ],
)
def test_a_folder_that_is_replaced_may_hold_the_one_that_is_loaded(path: str, folder: str, is_held: bool) -> None:
    assert holds(path, folder) is is_held


def test_what_would_be_deleted_is_named() -> None:
    require_apart("/data/in", {"--checkpoint": "/data"}, "--refused")
    with pytest.raises(JobError, match=r"^--refused /data has the folder that is loaded in it, /data/in, which would"):
        require_apart("/data/in", {"--refused": "/data"}, "--refused")


def test_links_of_this_machine_are_followed(tmp_path: Path) -> None:
    (tmp_path / "in").mkdir()
    (tmp_path / "link").symlink_to(tmp_path / "in")
    for table in (f"{tmp_path}/in", f"file://{tmp_path}/link", f"{tmp_path}/{{in,out}}"):
        with pytest.raises(JobError, match="is in the folder that is loaded"):
            require_apart(table, {"--refused": f"{tmp_path}/link/refused"})
