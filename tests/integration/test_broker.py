"""The embedded broker and cluster: a real Kafka that starts, keeps its data, and leaves nothing behind."""

from __future__ import annotations

import signal
import socket
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from support.processes import process_runs

from light_scheduler.devkit import EmbeddedBroker, EmbeddedCluster
from light_scheduler.devkit.readiness import admin_client
from light_scheduler.devkit.waiting import wait_until
from light_scheduler.errors import BrokerError, BrokerStartError
from light_scheduler.host.ports import free_port
from light_scheduler.kafka.replicas import FrailTopics, frail_topics

pytestmark = pytest.mark.integration

COMMAND = [sys.executable, "-c", "from light_scheduler.cli import main; main()", "broker"]


@pytest.mark.soak
@pytest.mark.every_case
def test_a_broker_has_its_data_to_itself_and_keeps_them_over_a_stop_and_a_kill_until_its_end() -> None:
    with EmbeddedBroker() as broker:
        address, folder = broker.bootstrap_servers, broker.data_dir
        create_topic(address, "kept")
        with pytest.raises(BrokerStartError, match="in use by another broker"):
            EmbeddedBroker(data_dir=folder).start()
        broker.stop()
        assert not broker.is_running
        broker.start()
        assert "kept" in topics(address)
        broker.kill()
        broker.start()
        assert broker.bootstrap_servers == address
        assert "kept" in topics(address)
        pid = broker.pid
    assert not process_runs(pid)
    assert not folder.exists()


def test_a_port_in_use_is_an_error_that_names_it() -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        with pytest.raises(BrokerStartError, match=f"port {port} .* in use"), EmbeddedBroker(port=port):
            pass


def test_a_killed_parent_leaves_no_java_and_no_temporary_data() -> None:
    port = free_port()
    with running("--port", str(port)) as parent:
        pid, folder = ready_line(parent, port)
        assert process_runs(pid)
        parent.kill()
        parent.wait()
        wait_until(lambda: not process_runs(pid), timeout=60, what="the end of Java")
        wait_until(lambda: not folder.exists(), timeout=60, what="the removal of its data")


@pytest.mark.soak
def test_the_command_runs_until_sigterm_and_the_next_one_takes_up_its_data(tmp_path: Path) -> None:
    port = free_port()
    for expected in ([], ["kept"]):
        with running("--port", str(port), "--data-dir", str(tmp_path / "data")) as parent:
            pid, folder = ready_line(parent, port)
            assert folder == tmp_path / "data"
            assert [name for name in topics(f"127.0.0.1:{port}") if name == "kept"] == expected
            if not expected:
                create_topic(f"127.0.0.1:{port}", "kept")
            parent.send_signal(signal.SIGTERM)
            assert parent.wait(120) == 0
            assert not process_runs(pid)


@pytest.mark.soak
@pytest.mark.every_case
def test_a_cluster_goes_on_without_one_of_three_nodes_which_catches_up_when_it_is_back() -> None:
    with EmbeddedCluster(3, heap_megabytes=256) as cluster:
        address = cluster.bootstrap_servers
        create_topic(address, "kept")
        wait_until(lambda: in_sync(address, "kept") == {1, 2, 3}, timeout=60, what="all nodes to know the copies")
        create_topic(address, "single", copies=1)
        create_topic(address, "spent", copies=2)  # of which the cluster's topics need two
        frail = FrailTopics(single=["single"], without_spare=["spent"])
        wait_until(lambda: frail_found(address) == frail, timeout=60, what="all nodes to know all copies")
        cluster.nodes[1].kill()
        wait_until(lambda: in_sync(address, "kept") == {1, 3}, timeout=60, what="the others to go on")
        produce(address, "kept")
        cluster.nodes[1].start()
        cluster.wait_in_sync()
        assert in_sync(address, "kept") == {1, 2, 3}
        pids = [node.pid for node in cluster.nodes]
        folder = cluster.nodes[0].data_dir.parent
    assert not any(map(process_runs, pids))
    assert not folder.exists()


@contextmanager
def running(*options: str) -> Iterator[subprocess.Popen[str]]:
    """Run `light-scheduler broker`, and kill it in the end if it still runs."""
    with subprocess.Popen([*COMMAND, *options], stdout=subprocess.PIPE, text=True) as parent:
        try:
            yield parent
        finally:
            parent.kill()


def ready_line(parent: subprocess.Popen[str], port: int) -> tuple[int, Path]:
    """Wait for the one line that says the broker is ready; return Java's process id and the data folder."""
    assert parent.stdout is not None
    line = parent.stdout.readline()
    assert line.startswith(f"Kafka is ready on 127.0.0.1:{port} (pid "), line
    pid, _, folder = line.partition("(pid ")[2].rstrip(")\n").partition(", ")
    return int(pid), Path(folder)


def frail_found(address: str) -> FrailTopics | None:
    """Return what is told of the copies of topics; None: a node that was asked does not know a new topic yet."""
    try:
        return frail_topics(address)
    except BrokerError:
        return None


def topics(address: str) -> list[str]:
    admin = admin_client(address)
    return list(admin.list_topics(timeout=60).topics)


def create_topic(address: str, name: str, copies: int = -1) -> None:
    from confluent_kafka.admin import NewTopic  # type: ignore[attr-defined]

    admin = admin_client(address)
    admin.create_topics([NewTopic(name, 1, copies)])[name].result(60)
    wait_until(lambda: bool(in_sync(address, name)), timeout=60, what="a leader")


def in_sync(address: str, name: str) -> set[int]:
    """Return the nodes that have all of a topic's only partition; none while it has no leader."""
    topic = admin_client(address).list_topics(name, timeout=60).topics[name]
    return {node for partition in topic.partitions.values() if partition.leader >= 0 for node in partition.isrs}


def produce(address: str, name: str) -> None:
    """Send a record, and have it acknowledged by all that are in sync."""
    from confluent_kafka import Producer

    producer = Producer({"bootstrap.servers": address, "acks": "all", "log_level": 0})
    errors: list[object] = []
    producer.produce(name, b"x", on_delivery=lambda error, _: errors.append(error))
    assert producer.flush(60) == 0
    assert errors == [None]
