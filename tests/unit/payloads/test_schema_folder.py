"""Avro in single-object encoding, decoded with the schemas of a folder."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

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


@pytest.mark.parametrize(
    ("name", "content", "reason"),
    [
        ("bad.avsc", '{"type": "nothing"}', "bad.avsc is no Avro schema"),
        ("bad.avsc", "no JSON", "bad.avsc is no Avro schema"),
        (None, "", "is not a folder"),
    ],
)
async def test_a_folder_that_cannot_be_used_is_refused_at_the_start(
    tmp_path: Path, name: str | None, content: str, reason: str
) -> None:
    folder = tmp_path if name else tmp_path / "missing"
    if name:
        (tmp_path / name).write_text(content)
    decoder = Decoder(None, folder)
    with pytest.raises(ConfigurationError) as caught:
        await decoder.check()
    assert caught.value.setting == "payload_schemas"
    assert reason in caught.value.reason
    await decoder.close()


async def test_the_decoding_process_has_the_schemas(tmp_path: Path) -> None:
    write(tmp_path, int="int")
    decoder = Decoder(None, tmp_path)
    await decoder.check()
    try:
        assert await decoder.decode(job(INT + b"\x0e")) == Decoded(by="avro", json="7")
    finally:
        await decoder.close()
