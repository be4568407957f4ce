"""State records: their bytes are fixed, and what is stored reads back as it was."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from light_scheduler.errors import FormatError, FormatTooNew
from light_scheduler.model import (
    BulkCommand,
    BulkPart,
    BulkTotal,
    ControlCommand,
    Entry,
    HomeKey,
    Once,
    Progress,
    ReplyTo,
    Requester,
    RescheduleCommand,
    Schedule,
    Selection,
    Target,
    home_key_of,
)
from light_scheduler.model.bulk import SUB_TOTAL, LackingTotal, ScopedPart, SubTotal, lacking
from light_scheduler.wire.state import (
    CommandsLog,
    bulk_offset_of,
    bulk_part_key,
    bulk_total_key,
    decode_bulk_part,
    decode_bulk_total,
    decode_commands_log,
    decode_emptied,
    decode_entry,
    decode_lent,
    decode_position,
    emptied_key,
    encode_bulk_part,
    encode_bulk_total,
    encode_emptied,
    encode_entry,
    encode_lent,
    encode_position,
    id_in,
    identity,
    lent_key,
)
from light_scheduler.wire.state_format import FORMAT_VERSION

AT = 1_767_225_600_000

ENTRY = Entry(
    Schedule(
        tenant="acme",
        id="pöst",
        version=2,
        trigger=Once(AT),
        target=Target("t", b"k", 3, b"p"),
        payload=b"x",
        headers=[("h", b"\xff"), ("n", None)],
        source_partition=3,
        source_offset=42,
        accepted_at=AT - 100_000,
        ttl=60_000,
        priority=5,
        labels={"a": "b"},
    ),
    Progress(due=AT, arrival=42, sequence=1, attempt=1),
)

# Format version 1, of one-shot schedules only. These bytes are in changelogs: they are read for ever.
FIRST_ENTRY_BYTES = bytes.fromhex(
    "01"  # format version
    "92"  # [schedule, progress]
    "9d"  # schedule: 13 fields
    "a461636d65"  # tenant "acme"
    "a570c3b67374"  # id "pöst"
    "02"  # version
    "92a46f6e6365cf0000019b76daa800"  # trigger ["once", 1767225600000]
    "94a174c4016b03c40170"  # target ["t", b"k", 3, b"p"]
    "c40178"  # payload b"x"
    "9292a168c401ff92a16ec0"  # headers [["h", b"\xff"], ["n", null]]
    "03"  # source partition
    "2a"  # source offset
    "cf0000019b76d92160"  # accepted at
    "cdea60"  # ttl
    "05"  # priority
    "81a161a162"  # labels {"a": "b"}
    "94"  # progress: 4 fields
    "cf0000019b76daa800"  # due
    "2a"  # arrival
    "01"  # sequence
    "01"  # attempt
)
# Format version 1 as it is written: the same, with the fields that were appended.
ENTRY_BYTES = (
    FIRST_ENTRY_BYTES.replace(bytes.fromhex("929d"), bytes.fromhex("929f"), 1)
    .replace(
        bytes.fromhex("92a46f6e6365cf0000019b76daa800"), bytes.fromhex("93a46f6e6365cf0000019b76daa800c2"), 1
    )  # trigger: not to be late
    .replace(
        bytes.fromhex("81a161a16294"), bytes.fromhex("81a161a162c0c09f"), 1
    )  # schedule: bounds and acknowledgement, null
    + bytes.fromhex("c0c0c000c0c290c0900000")  # progress: wake to delivered
)
# Format version 4: the same, with the key that decides the partition.
KEYED_BYTES = (
    ENTRY_BYTES.replace(bytes.fromhex("929f"), bytes.fromhex("92dc0010"), 1)  # schedule: 16 fields
    .replace(bytes.fromhex("81a161a162c0c0"), bytes.fromhex("81a161a162c0c000"), 1)  # home key: not known
    .replace(b"\x01", bytes([FORMAT_VERSION]), 1)
)
POSITION_BYTES = bytes.fromhex("010000000000001267")

NOW = bytes([FORMAT_VERSION])


def test_a_schedule_record_golden() -> None:
    assert encode_entry(ENTRY) == KEYED_BYTES
    assert decode_entry(KEYED_BYTES) == decode_entry(ENTRY_BYTES) == ENTRY
    assert decode_entry(FIRST_ENTRY_BYTES) == ENTRY


def test_the_records_of_a_topic_that_has_grown_golden() -> None:
    assert emptied_key(12, 3) == bytes.fromhex("050000000c00000003")
    assert encode_emptied() == NOW
    decode_emptied(NOW)
    assert lent_key(identity("acme", "a")) == b"\x06acme\0a"
    assert encode_lent(7) == NOW + bytes.fromhex("00000007")
    assert decode_lent(encode_lent(7)) == 7


@pytest.mark.parametrize("decode", [decode_emptied, decode_lent])
def test_the_records_of_a_topic_that_has_grown_are_refused_if_they_are_newer(decode: Any) -> None:
    with pytest.raises(FormatTooNew):
        decode(bytes([FORMAT_VERSION + 1]) + bytes(4))


def test_a_record_of_commands_that_are_away_has_a_length() -> None:
    with pytest.raises(FormatError, match="wrong length"):
        decode_lent(NOW + bytes(3))


@pytest.mark.parametrize(
    ("key", "target_key", "stored"),
    [
        (b"a", b"k", HomeKey.ID),
        (None, b"k", HomeKey.ID),
        (b"k", b"k", HomeKey.TARGET_KEY),
        (b"other", b"k", b"other"),
        (b"", None, b""),
    ],
)
def test_a_schedule_knows_the_key_of_its_commands(key: bytes | None, target_key: bytes | None, stored: Any) -> None:
    target = Target("t", target_key)
    assert home_key_of(key, "a", target) == stored
    schedule = msgspec.structs.replace(ENTRY.schedule, id="a", target=target, home_key=stored)
    read = decode_entry(encode_entry(Entry(schedule, ENTRY.progress))).schedule
    assert read.key == (b"a" if key is None else key)


def test_a_schedule_that_was_stored_before_keys_were_does_not_know_its_own() -> None:
    assert decode_entry(ENTRY_BYTES).schedule.key is None


def test_a_position_record_golden() -> None:
    assert encode_position(4711) == NOW + POSITION_BYTES[1:]
    assert decode_position(POSITION_BYTES) == 4711


BULK = BulkPart(
    RescheduleCommand(
        "acme",
        "a*",
        b"k",
        Once(AT),
        3,
        42,
        AT - 1,
        reply_to=ReplyTo("r", b"c"),
        selection=Selection("a", {"l": "m"}),
    ),
    origin_partition=1,
    origin_offset=7,
    after="a1",
    changed=300,
    token="7f",
)
BULK_PART_BYTES = bytes.fromhex(
    "01"  # format version
    "96"  # [command, origin partition, origin offset, after, changed, token], without the requester of format 3
    "8d"  # command: 13 fields
    "a474797065aa72657363686564756c65"  # "type": "reschedule"
    "a674656e616e74a461636d65"  # "tenant": "acme"
    "a26964a2612a"  # "id": "a*"
    "a36b6579c4016b"  # "key": b"k"
    "a674696d696e6793a46f6e6365cf0000019b76daa800c2"  # "timing": ["once", 1767225600000, false]
    "a9706172746974696f6e03"  # "partition": 3
    "a66f66667365742a"  # "offset": 42
    "ab7265636f726465645f6174cf0000019b76daa7ff"  # "recorded_at": 1767225599999
    "a76f6e5f70617374c0"  # "on_past": null
    "b065787065637465645f76657273696f6ec0"  # "expected_version": null
    "a87265706c795f746f82a5746f706963a172ae636f7272656c6174696f6e5f6964c40163"  # "reply_to": {...}
    "a6626f756e6473c0"  # "bounds": null
    "a973656c656374696f6e82a969645f707265666978a161a66c6162656c7381a16ca16d"  # "selection": {"id_prefix", "labels"}
    "01"  # origin partition
    "07"  # origin offset
    "a26131"  # after "a1"
    "cd012c"  # changed
    "a23766"  # token "7f"
)
REQUESTER = Requester("shop", "::1")
REQUESTER_BYTES = bytes.fromhex("92a473686f70a33a3a31")  # ["shop", "::1"]
TALLY = BulkTotal(ControlCommand("cancel", "acme", "*", None, 1, 7, AT, selection=Selection()), (0, 2), 5, "7f")


def test_a_record_of_a_bulk_command_golden() -> None:
    asked_for = msgspec.structs.replace(BULK, requester=REQUESTER)
    record = NOW + bytes.fromhex("97") + BULK_PART_BYTES[2:] + REQUESTER_BYTES
    assert encode_bulk_part(asked_for) == record
    assert decode_bulk_part(record) == asked_for
    assert decode_bulk_part(BULK_PART_BYTES) == BULK, "of an older version"
    assert bulk_part_key(0x1267) == bytes.fromhex("030000000000001267")


def test_a_total_golden() -> None:
    asked_for = msgspec.structs.replace(TALLY, requester=REQUESTER)
    record = encode_bulk_total(asked_for)
    assert record[:2] == NOW + bytes.fromhex("95")  # version, [command, awaited, changed, token, requester]
    assert record[-17:] == bytes.fromhex("92000205a23766") + REQUESTER_BYTES  # [0, 2], 5, "7f"
    assert decode_bulk_total(record) == asked_for
    assert bulk_total_key(0x1267) == bytes.fromhex("040000000000001267")


def test_parts_and_totals_in_a_topic_that_grows_are_of_a_format_that_older_workers_refuse() -> None:
    part = ScopedPart(BULK.command, 1, SUB_TOTAL + 7, "a1", 300, "7f", REQUESTER, former=1)
    total = SubTotal(TALLY.command, (0, 2), 5, "7f", None, 3, 9, "8e")
    of_part, of_total = encode_bulk_part(part), encode_bulk_total(total)
    assert (of_part[:2], of_total[:2]) == (b"\x80\x98", b"\x80\x98")
    assert of_part[-1:] == b"\x01"
    assert of_total[-6:] == bytes.fromhex("c00309a23865")
    assert (decode_bulk_part(of_part), decode_bulk_total(of_total)) == (part, total)
    assert bulk_offset_of(bulk_total_key(SUB_TOTAL + 7)) == SUB_TOTAL + 7
    with pytest.raises(FormatTooNew):
        decode_entry(of_part)


def test_a_total_that_misses_partitions_golden() -> None:
    total = SubTotal(TALLY.command, (0, 2), 5, "7f", None, 3, 9, "8e")
    record = encode_bulk_total(lacking(total, {7}))
    assert record[:2] == b"\x81\x99"
    assert record[-8:] == bytes.fromhex("c00309a238659107")
    assert decode_bulk_total(record) == LackingTotal(TALLY.command, (0, 2), 5, "7f", None, 3, 9, "8e", (7,))


def test_what_a_total_misses_adds_up() -> None:
    total = lacking(lacking(TALLY, (7, 3)), (3, 1))
    assert (total.missing, total.without, total.parent_token) == ((1, 3, 7), (0, 1, 2, 3, 7), "")
    assert TALLY.without == (0, 2)


@pytest.mark.parametrize("command", [BULK.command, TALLY.command])
def test_every_command_for_many_reads_back_as_it_was(command: BulkCommand) -> None:
    assert decode_bulk_part(encode_bulk_part(BulkPart(command, 0, 0))).command == command
    assert decode_bulk_total(encode_bulk_total(BulkTotal(command, ()))).command == command


texts = st.text(max_size=8)
some_bytes = st.none() | st.binary(max_size=8)
numbers = st.integers(0, 2**63 - 1)
entries = st.builds(
    Entry,
    st.builds(
        Schedule,
        tenant=texts,
        id=texts,
        version=numbers,
        trigger=st.builds(Once, numbers),
        target=st.builds(Target, texts, some_bytes, st.none() | numbers, some_bytes),
        payload=some_bytes,
        headers=st.lists(st.tuples(texts, some_bytes), max_size=3),
        source_partition=numbers,
        source_offset=numbers,
        accepted_at=numbers,
        ttl=st.none() | numbers,
        priority=st.integers(0, 255),
        labels=st.none() | st.dictionaries(texts, texts, max_size=3),
    ),
    st.builds(Progress, numbers, numbers, numbers, numbers),
)


@given(entries)
def test_every_schedule_reads_back_as_it_was(entry: Entry) -> None:
    assert decode_entry(encode_entry(entry)) == entry


@given(st.integers(0, 2**64 - 1))
def test_every_position_reads_back_as_it_was(offset: int) -> None:
    assert decode_position(encode_position(offset)) == offset


LOG = CommandsLog("vPeOCWypqUOSepEvx0cbog", "app", "commands")


@pytest.mark.parametrize("value", [b"", b"\x00", b"\x01", POSITION_BYTES[:-1], POSITION_BYTES + b"\x00"])
def test_a_position_has_its_whole_offset_and_a_whole_log_or_none(value: bytes) -> None:
    with pytest.raises(FormatError):
        decode_position(value)


@pytest.mark.parametrize("log", [None, LOG, LOG._replace(topic_id=""), LOG._replace(number=12)])
def test_a_position_says_in_which_log_it_is(log: CommandsLog | None) -> None:
    value = encode_position(4711, log)
    assert (decode_position(value), decode_commands_log(value)) == (4711, log)


def test_the_bytes_of_a_position_with_its_log_are_fixed() -> None:
    first = POSITION_BYTES[1:] + b"vPeOCWypqUOSepEvx0cbog\x00app\x00commands"
    assert encode_position(4711, LOG) == NOW + first
    assert encode_position(4711, LOG._replace(number=12)) == b"\x84" + first + b"\x0012"


@pytest.mark.parametrize("number", [None, b"", b"x", b"0", b"-3", b"+1", b"1_0", b"12345", b"1\x002"])
def test_a_position_of_a_later_log_has_its_number(number: bytes | None) -> None:
    first = encode_position(4711, LOG)[1:]
    with pytest.raises(FormatError, match="a log without its number"):
        decode_commands_log(b"\x84" + first + (b"" if number is None else b"\x00" + number))


def test_a_position_of_a_later_log_has_its_log() -> None:
    with pytest.raises(FormatError, match="a log that cannot be read"):
        decode_commands_log(b"\x84" + encode_position(4711)[1:])


def test_only_a_position_of_a_later_log_has_a_number() -> None:
    with pytest.raises(FormatError, match="a number too many"):
        decode_commands_log(encode_position(4711, LOG) + b"\x001")


def test_identities_of_different_schedules_differ() -> None:
    names = [("a", "b"), ("a", "bc"), ("ab", "c"), ("ab", "b"), ("b", "a"), ("a", "ä")]
    assert len({identity(*name) for name in names}) == len(names)
    assert identity("acme", "pöst") == b"acme\x00p\xc3\xb6st"
    assert [id_in(identity(*name)) for name in names] == [id for _, id in names]
