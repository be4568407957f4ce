"""Avro in single-object encoding, decoded with the schemas of a folder."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import fastavro.schema
import pytest

from light_scheduler.errors import ConfigurationError
from light_scheduler.payloads.decode import decoded
from light_scheduler.payloads.decoder import Decoder
from light_scheduler.payloads.job import Decoded, Job
from light_scheduler.payloads.schema_folder import SchemaFolder

INT = b"\xc3\x01" + (8247732601305521295).to_bytes(8, "little")
"""What the encoding of the schema `"int"` begins with: the fingerprint is the one in Avro's own test data."""

ADDRESS = {"type": "record", "name": "Address", "namespace": "shop", "fields": [{"name": "city", "type": "string"}]}
ORDER = {
    "type": "record",
    "name": "Order",
    "namespace": "shop",
    "doc": "fingerprints leave this out",
    "fields": [{"name": "card", "type": "string"}, {"name": "to", "type": "shop.Address"}],
}


def write(folder: Path, **schemas: Any) -> SchemaFolder:
    """Write schemas by the names of their files."""
    for name, schema in schemas.items():
        (folder / f"{name.replace('_', '.')}.avsc").write_text(json.dumps(schema))
    return SchemaFolder(folder)


def job(payload: bytes, **fields: Any) -> Job:
    return Job(payload=payload, headers=[], topic="out", **fields)


def test_a_payload_is_decoded_with_the_schema_of_its_fingerprint(tmp_path: Path) -> None:
    schemas = write(tmp_path, int="int", text="string")
    assert decoded(job(INT + b"\x0e"), None, schemas) == Decoded(by="avro", json="7")
    assert decoded(job(INT + b"\x0e"), lambda *_: "mine", schemas) == Decoded(by="hook", text="mine")
    assert decoded(job(INT + b"\x0e"), None) is None


def test_a_schema_may_refer_to_another_file_and_fields_are_masked(tmp_path: Path) -> None:
    schemas = write(tmp_path, shop_Order=ORDER, shop_Address=ADDRESS)
    schemas.read()
    fingerprint = next(name for name, each in schemas._schemas.items() if each["name"] == "shop.Order")
    payload = b"\xc3\x01" + bytes.fromhex(fingerprint) + b"\x084111\x0aPrag!"
    found = decoded(job(payload, masked=("card",)), None, schemas)
    assert found == Decoded(by="avro", json='{"card":"********","to":{"city":"Prag!"}}')


def test_a_file_that_is_added_is_found_without_a_restart(tmp_path: Path) -> None:
    schemas = write(tmp_path, text="string")
    found = decoded(job(INT + b"\x0e"), None, schemas)
    assert found is not None
    assert found.error == f"LookupError: no schema in {tmp_path} has the fingerprint 7275d51a3f395c8f"
    write(tmp_path, number="int")
    assert decoded(job(INT + b"\x0e"), None, schemas) == Decoded(by="avro", json="7")


@pytest.mark.parametrize("payload", [INT, INT + b"\x0e\x0e", INT[:9], b"\xc3\x02" + INT[2:]])
def test_what_is_cut_off_or_no_such_encoding_is_no_value(tmp_path: Path, payload: bytes) -> None:
    found = decoded(job(payload), None, write(tmp_path, int="int"))
    assert found is None or found.error is not None


def test_a_folder_that_has_not_changed_is_not_read_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    read: list[str] = []
    load = fastavro.schema.load_schema

    def noted(path: str) -> Any:
        read.append(Path(path).name)
        return load(path)

    monkeypatch.setattr(fastavro.schema, "load_schema", noted)
    schemas = write(tmp_path, text="string")
    for _ in range(2):
        with pytest.raises(LookupError):
            schemas.of(INT[2:])
    assert read == ["text.avsc"]
    write(tmp_path, text="int")
    assert schemas.of(INT[2:]) == "int"


@pytest.mark.parametrize("content", ['{"type": "nothing"}', "no JSON", "[" * 100_000, None])
def test_a_broken_file_is_named_and_all_others_can_be_used(tmp_path: Path, content: str | None) -> None:
    bad = tmp_path / "bad.avsc"
    if content is None:
        bad.symlink_to(tmp_path / "missing")
    else:
        bad.write_text(content)
    schemas = write(tmp_path, text="string")
    found = decoded(job(INT + b"\x0e"), None, schemas)
    assert found is not None
    assert found.error is not None
    assert f"has the fingerprint 7275d51a3f395c8f; {bad} is no Avro schema: " in found.error
    write(tmp_path, number="int")
    assert decoded(job(INT + b"\x0e"), None, schemas) == Decoded(by="avro", json="7")
    assert len(schemas.broken) == 1
    bad.unlink()
    schemas.read()
    assert schemas.broken == []


async def test_a_folder_that_is_none_is_refused_at_the_start(tmp_path: Path) -> None:
    decoder = Decoder(None, tmp_path / "missing")
    with pytest.raises(ConfigurationError) as caught:
        await decoder.check()
    assert (caught.value.setting, caught.value.reason) == ("payload_schemas", f"{tmp_path}/missing is not a folder")
    await decoder.close()


HOOK = r"""
import os

def decode(payload, headers, topic):
    if payload == b"end":
        os._exit(3)
    return NotImplemented if payload.startswith(b"\xc3") else "mine"
"""


async def test_a_decoding_process_that_starts_anew_names_what_is_broken_and_decodes_all_else(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    (tmp_path / "hook_beside_schemas.py").write_text(HOOK)
    monkeypatch.syspath_prepend(tmp_path)
    folder = tmp_path / "schemas"
    folder.mkdir()
    write(folder, int="int")
    decoder = Decoder("hook_beside_schemas:decode", folder)
    await decoder.check()
    assert caplog.text == ""
    try:
        (folder / "bad.avsc").write_text("no JSON")
        assert (ended := await decoder.decode(job(b"end"))) is not None
        assert ended.error is not None
        assert await decoder.decode(job(b"x")) == Decoded(by="hook", text="mine")
        assert await decoder.decode(job(INT + b"\x0e")) == Decoded(by="avro", json="7")
        assert f"payload_schemas: {folder}/bad.avsc is no Avro schema: " in caplog.text

        folder.rename(tmp_path / "elsewhere")
        await decoder.decode(job(b"end"))
        assert await decoder.decode(job(b"x")) == Decoded(by="hook", text="mine")
        assert f"payload_schemas: {folder} is not a folder" in caplog.text
        found = await decoder.decode(job(INT + b"\x0e"))
        assert found == Decoded(by="avro", error=f"ValueError: {folder} is not a folder")
    finally:
        await decoder.close()


async def test_the_decoding_process_has_the_schemas(tmp_path: Path) -> None:
    write(tmp_path, int="int")
    decoder = Decoder(None, tmp_path)
    await decoder.check()
    try:
        assert await decoder.decode(job(INT + b"\x0e")) == Decoded(by="avro", json="7")
    finally:
        await decoder.close()
