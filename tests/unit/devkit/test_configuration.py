"""The broker's configuration files say what they should."""

from __future__ import annotations

import re
from pathlib import Path

from light_scheduler.devkit.properties import (
    FurtherPorts,
    Node,
    SideDoor,
    WaysIn,
    controller_properties,
    server_properties,
)
from light_scheduler.devkit.storage import BrokerFolder
from light_scheduler.host.ports import free_port, port_is_free


def parsed(text: str) -> dict[str, str]:
    """Read properties as Java does, as far as this test needs it."""
    pairs = dict(line.split("=", 1) for line in text.splitlines())
    return {
        name: re.sub(r"\\(u([0-9a-f]{4})|.)", lambda m: chr(int(m[2], 16)) if m[2] else m[1], value)
        for name, value in pairs.items()
    }


def properties(log_dir: Path = Path("/data")) -> dict[str, str]:
    return parsed(server_properties(WaysIn(9092), Node(9093), log_dir))


def test_every_listener_is_on_the_loopback_address() -> None:
    assert properties()["listeners"] == "PLAINTEXT://127.0.0.1:9092,CONTROLLER://127.0.0.1:9093"
    assert properties()["advertised.listeners"] == "PLAINTEXT://127.0.0.1:9092"


def test_who_comes_in_by_a_side_door_is_told_to_come_back_by_what_stands_before_it() -> None:
    doors = [SideDoor(7001, 7002), SideDoor(7003, 7004)]
    found = parsed(server_properties(WaysIn(9092, FurtherPorts(doors)), Node(9093), Path("/data")))
    assert "SIDE0://127.0.0.1:7001,SIDE1://127.0.0.1:7003," in found["listeners"]
    assert found["advertised.listeners"].endswith("SIDE0://127.0.0.1:7002,SIDE1://127.0.0.1:7004")
    assert found["listener.security.protocol.map"].count(":PLAINTEXT") == 4


def test_one_node_is_enough_for_every_internal_topic() -> None:
    needs = {name: value for name, value in properties().items() if name.endswith(("replication.factor", "min.isr"))}
    assert len(needs) >= 5
    assert set(needs.values()) == {"1"}


def test_of_three_copies_one_may_be_missing() -> None:
    for text in (
        server_properties(WaysIn(9092), Node(9093, 2, copies=3), Path("/data")),
        controller_properties(port=9093, log_dir=Path("/data"), copies=3),  # which places the copies of new topics
    ):
        found = parsed(text)
        assert {value for name, value in found.items() if name.endswith("replication.factor")} == {"3"}
        assert {value for name, value in found.items() if name.endswith(("min.isr", "min.insync.replicas"))} == {"2"}


def test_a_broker_without_a_controller_asks_the_one_that_is_another_process() -> None:
    text = server_properties(WaysIn(9092), Node(9093, 2, has_controller=False), Path("/data"))
    found = parsed(text)
    assert (found["process.roles"], found["node.id"]) == ("broker", "2")
    assert found["controller.quorum.voters"] == "100@127.0.0.1:9093"
    assert "CONTROLLER" not in found["listeners"]


def test_properties_of_ones_own_are_added_or_take_the_place_of_ours() -> None:
    others = {"num.io.threads": 1, "authorizer.class.name": "org.example.Authorizer"}
    added = {name: str(value) for name, value in others.items()}
    text = server_properties(WaysIn(9092), Node(9093), Path("/data"), others)
    assert parsed(text) == properties() | added
    plain = parsed(controller_properties(port=9093, log_dir=Path("/data"), copies=3))
    text = controller_properties(port=9093, log_dir=Path("/data"), copies=3, others=others)
    assert parsed(text) == plain | added


def test_a_folder_with_unusual_characters_is_read_back_as_it_is() -> None:
    folder = Path("/tmp/schöne daten\\n/😀")
    text = server_properties(WaysIn(9092), Node(9093), folder)
    assert text.isascii()
    encoded = parsed(text)["log.dirs"].encode("utf-16", "surrogatepass").decode("utf-16")
    assert encoded == str(folder)


def test_log_end_is_the_last_lines_only(tmp_path: Path) -> None:
    folder = BrokerFolder(tmp_path)
    assert folder.log_end() == ""
    folder.log_file.write_text("".join(f"line {number}\n" for number in range(100)))
    assert folder.log_end().splitlines()[-1] == "line 99"
    assert len(folder.log_end().splitlines()) == 20


def test_a_free_port_can_be_bound() -> None:
    assert port_is_free(free_port())


def test_a_port_is_given_once_though_nobody_listens_on_it_yet() -> None:
    ports = [free_port() for _ in range(500)]
    assert len(set(ports)) == len(ports)
