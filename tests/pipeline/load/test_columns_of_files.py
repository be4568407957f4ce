"""Files of one table that differ in their columns: nothing is left out or mixed up without a word."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import pytest
from py4j.protocol import Py4JError
from pyspark.errors import PySparkException
from support.loading import AT, Load, commands, going_on, meanwhile, parquet, put

from light_scheduler.cli.pipeline.running import reason_of
from light_scheduler.errors import JobError
from light_scheduler.testing import Kafka

pytestmark = [pytest.mark.pipeline, pytest.mark.integration, pytest.mark.timeout(900), pytest.mark.soak]

SET = {"target-topic": "t", "at": str(AT)}
TOPICS = {"a": "id,target_topic,payload\na,one,x\n", "b": "id,payload,target_topic\nb,x,two\n"}


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    folder = tmp_path / "rows"
    folder.mkdir()
    return folder


def test_a_csv_file_with_its_columns_in_another_order_is_an_error_that_names_it(
    load: Load, kafka: Kafka, topic: str, folder: Path
) -> None:
    for name, text in TOPICS.items():
        (folder / name).write_text(text)
    with pytest.raises((PySparkException, Py4JError)) as failed:
        load(folder, format="csv", constants={"at": str(AT)})
    # Spark takes the columns from the one or the other.
    one, other = "id, target_topic, payload", "id, payload, target_topic"
    found = r"rows/{} has the header {}, and the table has the columns {}: give all files the same columns"
    expected = f"{found.format('a', one, other)}|{found.format('b', other, one)}"
    assert re.search(expected, reason_of(failed.value))
    assert {command.target.topic for command in commands(kafka, topic)} <= {"one", "two"}
    by_position = {"enforceSchema": "true"}
    assert load(folder, format="csv", constants={"at": str(AT)}, reading=by_position, name="by position").sent == 2
    assert "x" in {command.target.topic for command in commands(kafka, topic)}


@pytest.mark.every_case
def test_a_load_that_goes_on_stops_at_a_csv_file_with_another_header(
    load: Load, sent: Callable[[int], None], folder: Path, tmp_path: Path
) -> None:
    (folder / "a").write_text(TOPICS["a"])

    def add() -> None:
        sent(1)
        put(folder / "b", TOPICS["b"])

    with pytest.raises((PySparkException, Py4JError)) as failed, meanwhile(add):
        load(folder, format="csv", constants={"at": str(AT)}, refused=str(tmp_path / "refused"), every_s=1.0)
    assert "rows/b has the header id, payload, target_topic" in reason_of(failed.value)


def test_a_csv_file_may_have_a_column_without_a_name(load: Load, folder: Path) -> None:
    (folder / "a").write_text(",id\n0,a\n1,b\n")
    assert load(folder, format="csv", constants=SET, ignored=("_c0",)).sent == 2


@pytest.mark.parametrize("format", ["parquet", "csv", "json"])
def test_a_folder_without_files_is_an_error_with_what_to_do(load: Load, folder: Path, format: str) -> None:
    with pytest.raises(JobError, match=rf"rows has no file, .* of the format {format}.*: put one there"):
        load(folder, format=format, constants=SET, refused=str(folder.parent / "refused"), every_s=1.0)


def test_what_is_refused_is_not_written_into_the_folder_that_is_loaded(load: Load, folder: Path) -> None:
    (folder / "a").write_text('{"id": "a"}\n')
    for option in ("refused", "checkpoint"):
        with pytest.raises(JobError, match=f"--{option} .* is in the folder that is loaded"):
            load(folder, format="json", constants=SET, **{option: str(folder / "more")})


@pytest.mark.parametrize("format", ["parquet", "csv"])
def test_a_column_in_the_names_of_folders_is_text(
    load: Load, kafka: Kafka, topic: str, folder: Path, format: str
) -> None:
    for tenant in ("007", "8"):
        (folder / f"tenant={tenant}").mkdir()
        if format == "csv":
            (folder / f"tenant={tenant}" / "rows.csv").write_text("id,payload\na,x\n")
        else:
            parquet(folder / f"tenant={tenant}" / "rows.parquet", id=["a"])
    assert load(folder, format=format, constants=SET).sent == 2
    assert {command.tenant for command in commands(kafka, topic)} == {"007", "8"}


TENANTS = {"007": "007", "8": "acme"}
"""By the tenant in the name of a folder, the tenant in its file."""


def put_tenants(folder: Path, format: str, tenants: Mapping[str, str] = TENANTS) -> None:
    for number, (name, tenant) in enumerate(tenants.items()):
        (inner := folder / f"tenant={name}").mkdir()
        id = f"id-{number}"
        if format == "csv":
            (inner / "rows.csv").write_text(f"tenant,id\n{tenant},{id}\n")
        elif format == "json":
            (inner / "rows.json").write_text(f'{{"id": "{id}", "tenant": "{tenant}"}}\n')
        else:
            parquet(inner / "rows.parquet", id=[id], tenant=[tenant])


@pytest.mark.parametrize("format", ["parquet", "csv", pytest.param("json", marks=pytest.mark.every_case)])
@pytest.mark.every_case
def test_another_value_in_a_file_than_in_the_name_of_its_folder_is_an_error_with_what_to_do(
    load: Load, kafka: Kafka, topic: str, folder: Path, format: str
) -> None:
    put_tenants(folder, format)
    with pytest.raises(JobError, match=r"the column tenant is .*tenant=8/.* has a row with acme in it instead of 8"):
        load(folder, format=format, constants=SET)
    assert commands(kafka, topic) == []
    assert load(folder, format=format, constants=SET, reading={"recursiveFileLookup": "true"}).sent == 2
    assert {command.tenant for command in commands(kafka, topic)} == set(TENANTS.values())
    assert load(folder / "tenant=8", format=format, constants=SET).sent_before == 1, "it is in no folder of that name"


@pytest.mark.parametrize("format", ["parquet", "csv", pytest.param("json", marks=pytest.mark.every_case)])
@pytest.mark.every_case
def test_files_may_repeat_the_values_of_their_folders(
    load: Load, kafka: Kafka, topic: str, folder: Path, format: str
) -> None:
    put_tenants(folder, format, {name: name for name in TENANTS})
    assert load(folder, format=format, constants=SET).sent == 2
    assert {command.tenant for command in commands(kafka, topic)} == set(TENANTS)


def test_files_may_have_the_column_of_their_folder_or_not(load: Load, folder: Path) -> None:
    for name, row in (("a", '{"id": "a", "tenant": "a"}'), ("b", '{"id": "b"}'), ("c", '{"id": "c", "tenant": null}')):
        (inner := folder / f"tenant={name}").mkdir()
        (inner / "f.json").write_text(f"{row}\n")
    assert load(folder, format="json", constants=SET).sent == 3


def test_a_folder_above_one_without_a_column_has_none(load: Load, kafka: Kafka, topic: str, folder: Path) -> None:
    (inner := folder / "priority=1" / "x" / "tenant=a").mkdir(parents=True)
    (inner / "f.json").write_text('{"id": "a", "priority": 5}\n')
    assert load(folder, format="json", constants=SET).sent == 1
    (command,) = commands(kafka, topic)
    assert (command.tenant, command.priority) == ("a", 5)


@pytest.mark.every_case
def test_a_load_that_goes_on_stops_at_a_file_with_another_value_than_its_folder(
    load: Load, kafka: Kafka, topic: str, sent: Callable[[int], None], folder: Path, tmp_path: Path
) -> None:
    (inner := folder / "tenant=007").mkdir()
    parquet(inner / "a", id=["a"], tenant=["007"])

    def add() -> None:
        sent(1)
        parquet(tmp_path / "b", id=["b"], tenant=["8"]).rename(inner / "b")

    with pytest.raises(JobError, match="the column tenant is in the files and in the names"), meanwhile(add):
        load(folder, constants=SET, refused=str(tmp_path / "refused"), every_s=1.0)
    assert len(commands(kafka, topic)) == 1


@pytest.mark.every_case
def test_a_load_that_goes_on_takes_columns_from_folders_below_a_base_path(
    load: Load, kafka: Kafka, topic: str, sent: Callable[[int], None], folder: Path, tmp_path: Path
) -> None:
    (inner := folder / "tenant=007").mkdir()
    (inner / "a").write_text('{"id": "a"}\n')
    options: dict[str, Any] = {"format": "json", "constants": SET, "reading": {"basePath": str(folder)}}
    with going_on(load, folder / "tenant=*", refused=str(tmp_path / "refused"), **options):
        sent(1)
    assert [command.tenant for command in commands(kafka, topic)] == ["007"]


def test_a_column_that_only_some_parquet_files_have_is_loaded(
    load: Load, kafka: Kafka, topic: str, folder: Path
) -> None:
    for number in range(3):
        payload = {} if number != 1 else {"payload": ["with"]}
        parquet(folder / f"{number}.parquet", id=[f"id-{number}"], **payload)
    assert load(folder, constants=SET).sent == 3
    assert [command.payload for command in commands(kafka, topic)] == [None, b"with", None]


def test_a_column_of_two_types_in_parquet_files_is_an_error_with_what_to_do(load: Load, folder: Path) -> None:
    parquet(folder / "a.parquet", id=["a"], priority=[1])
    parquet(folder / "b.parquet", id=["b"], priority=["1"])
    with pytest.raises((PySparkException, Py4JError)) as failed:
        load(folder, constants=SET)
    assert "a column of the same name with different types" in reason_of(failed.value)


@pytest.mark.parametrize(
    ("format", "column"),
    [
        pytest.param("parquet", "payload"),
        pytest.param("json", "payload", marks=pytest.mark.every_case),
        pytest.param("json", "headers.new"),
    ],
)
@pytest.mark.every_case
def test_a_load_that_goes_on_stops_at_new_columns_and_has_them_when_it_is_started_again(
    load: Load,
    kafka: Kafka,
    topic: str,
    sent: Callable[[int], None],
    folder: Path,
    tmp_path: Path,
    format: str,
    column: str,
) -> None:
    options = {
        "format": format,
        "constants": SET,
        "refused": str(tmp_path / "refused"),
        "checkpoint": str(tmp_path / "checkpoint"),
    }

    def write(name: str, *, is_new: bool) -> None:
        aside = tmp_path / name
        if format == "parquet":
            parquet(aside, id=[name], **({"payload": [name]} if is_new else {}))
        else:
            new = ', "payload": "p"' if column == "payload" else ', "headers": {"old": "1", "new": "2"}'
            old = ', "headers": {"old": "1"}'
            aside.write_text(f'{{"id": "{name}"{new if is_new else old}}}\n')
        aside.rename(folder / name)

    def add() -> None:
        sent(1)
        write("b", is_new=True)

    write("a", is_new=False)
    with pytest.raises(JobError, match=rf"have the column {column}, .* start the load again.*/b$"), meanwhile(add):
        load(folder, every_s=1.0, **options)
    assert len(commands(kafka, topic)) == 1
    with going_on(load, folder, **options):
        sent(2)
    new = commands(kafka, topic)[1]
    assert new.headers == [("new", b"2"), ("old", b"1")] if "headers" in column else new.payload is not None
