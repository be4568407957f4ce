"""The blocking client without a broker: how it is made, how it waits, and what it says of what was not delivered."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping
from concurrent.futures import Future
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from support.waiting import eventually_blocking

from light_scheduler.client import BlockingSchedulerClient, NotDelivered, Receipt, Unanswered, blocking_producer
from light_scheduler.client.blocking_producer import BlockingProducer
from light_scheduler.client.commands import CommandToSend, schedule_command
from light_scheduler.client.deadline import Deadline
from light_scheduler.connection.renewed_files import Renewed
from light_scheduler.errors import BrokerError, ClientError, InvalidCommand
from light_scheduler.model import ReplyTo, Result

ROOT = Path(__file__).resolve().parents[3]


def command(id: str, payload: bytes = b"") -> CommandToSend:
    return schedule_command("default", {"id": id, "topic": "t", "payload": payload, "after": "1h"})


def unchanging(options: dict[str, Any]) -> Renewed[Mapping[str, Any]]:
    return Renewed(lambda: options, (), "options")


def test_it_has_the_calls_of_the_asyncio_client() -> None:
    check = subprocess.run(
        [sys.executable, ROOT / "scripts" / "blocking_client.py", "--check"],
        capture_output=True,
        text=True,
        check=False,
    )
    assert check.returncode == 0, check.stderr


def test_a_full_queue_waits_for_room_until_the_time_is_up(unused_tcp_port: int) -> None:
    options: dict[str, Any] = {"bootstrap.servers": f"127.0.0.1:{unused_tcp_port}", "queue.buffering.max.messages": 10}
    producer = BlockingProducer(unchanging(options), 1_000_000)
    sent = [producer.send("t", command(f"id-{n}"), Deadline(5)) for n in range(10)]
    began = time.monotonic()
    with pytest.raises(BrokerError, match=r"default/one-more: .* wait for the broker already"):
        producer.send("t", command("one-more"), Deadline(0.3))
    assert time.monotonic() - began >= 0.3
    left = producer.close(0)
    assert [each.id for each in left] == [f"id-{n}" for n in range(10)]
    for future in sent:
        with pytest.raises(BrokerError, match="cannot send the command for default/id-"):
            future.result(5)


def test_a_command_that_no_record_can_hold_is_refused_and_not_kept(unused_tcp_port: int) -> None:
    producer = BlockingProducer(unchanging({"bootstrap.servers": f"127.0.0.1:{unused_tcp_port}"}), 100_000)
    with pytest.raises(InvalidCommand, match="payload: is too large"):
        producer.send("t", command("a", bytes(200_000)), Deadline(5))
    assert producer.close(0) == []


def test_nothing_is_sent_after_close(unused_tcp_port: int) -> None:
    producer = BlockingProducer(unchanging({"bootstrap.servers": f"127.0.0.1:{unused_tcp_port}"}), 100_000)
    producer.close(0)
    with pytest.raises(ClientError, match="the client was closed"):
        producer.send("t", command("a"), Deadline(5))


def test_closing_names_what_was_not_delivered(unused_tcp_port: int, monkeypatch: pytest.MonkeyPatch) -> None:
    server = f"127.0.0.1:{unused_tcp_port}"
    client = BlockingSchedulerClient(server)
    producer = client._channel._open_producer = BlockingProducer(unchanging({"bootstrap.servers": server}), 100_000)
    client._channel._known_topics["light-scheduler-commands"] = 1
    with pytest.raises(BrokerError, match="the broker did not answer in time"):
        client.schedule("order-1", topic="t", wait=False, timeout=0.1)
    with pytest.raises(NotDelivered, match=r"1 commands were not acknowledged within 0 s .* default/order-1") as caught:
        client._channel.close(0)
    assert caught.value.commands == [("default", "order-1")]
    assert not producer._thread.is_alive()
    client.close()


def test_one_command_that_is_not_acknowledged_does_not_lose_the_answers_to_the_others(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    channel = BlockingSchedulerClient()._channel

    class Answers:
        @contextmanager
        def expected(self) -> Iterator[tuple[ReplyTo, Future[Result]]]:
            yield ReplyTo("results", b"1"), Future()

    def sent(given: CommandToSend, _: Deadline) -> Future[Receipt]:
        future: Future[Receipt] = Future()
        if given.id == "good":
            future.set_result(Receipt(given.tenant, given.id, 0, 7))
        return future

    monkeypatch.setattr(channel, "_running_answers", Answers)
    monkeypatch.setattr(channel, "_sent", sent)
    answers = channel.ask_many([lambda _, id=id: command(id) for id in ("bad", "good")], 0.01)  # type: ignore[misc]
    assert answers == [Unanswered("default", "bad", -1, -1), Unanswered("default", "good", 0, 7)]
    with pytest.raises(BrokerError, match="default/bad: the broker did not answer in time"):
        channel.ask_many([lambda _: command("bad")], 0.01)


@pytest.mark.parametrize("wait", [False, True])
def test_a_request_that_is_too_large_is_refused_before_it_is_sent_alone_and_by_its_number_among_many(
    wait: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    client: Any = BlockingSchedulerClient(max_request_bytes=1_000)
    sent: list[str] = []

    class Answers:
        @contextmanager
        def expected(self) -> Iterator[tuple[ReplyTo, Future[Result]]]:
            yield ReplyTo("results", b"1"), Future()

    def noted(given: CommandToSend, _: Deadline) -> Future[Receipt]:
        sent.append(given.id)
        return Future()

    monkeypatch.setattr(client._channel, "_running_answers", lambda *_: Answers())
    monkeypatch.setattr(client._channel, "_sent", noted)
    requests = [{"id": id, "payload": payload, "topic": "t"} for id, payload in (("a", b""), ("large", bytes(999)))]
    too_large = r"payload: is too large: default/large makes a record of .* and max_request_bytes is 1,000"
    with pytest.raises(InvalidCommand, match=rf"{too_large} \(request 2\)"):
        client.schedule_many(requests, wait=wait)
    with pytest.raises(InvalidCommand, match=f"{too_large}$"):
        client.schedule("large", bytes(999), topic="t", wait=wait)
    assert sent == ["a"]


def test_a_failure_in_the_block_is_not_hidden_by_what_was_not_delivered(
    unused_tcp_port: int, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr("light_scheduler.client.blocking_channel.BlockingChannel.close.__defaults__", (0,))
    server = f"127.0.0.1:{unused_tcp_port}"
    client = BlockingSchedulerClient(server)
    producer = client._channel._open_producer = BlockingProducer(unchanging({"bootstrap.servers": server}), 100_000)
    producer.send("t", command("order-1"), Deadline(1))
    with pytest.raises(ZeroDivisionError), client:
        _ = 1 / 0
    assert "default/order-1" in caplog.text


def test_in_a_forked_process_it_refuses_calls_and_closing_waits_for_nothing(
    unused_tcp_port: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    server = f"127.0.0.1:{unused_tcp_port}"
    client = BlockingSchedulerClient(server)
    producer = client._channel._open_producer = BlockingProducer(unchanging({"bootstrap.servers": server}), 100_000)
    client._channel._opened_by = os.getpid()
    producer.send("t", command("order-1"), Deadline(1))
    with monkeypatch.context() as forked:
        forked.setattr(os, "getpid", lambda: -1)
        for call in (client.start, lambda: client.schedule("a", topic="t"), lambda: next(client.watch())):
            with pytest.raises(
                ClientError, match="opened before this process was forked: create another one in this process"
            ):
                call()
        began = time.monotonic()
        client.close()
        assert time.monotonic() - began < 10
    assert [each.id for each in producer.close(0)] == ["order-1"]


def test_a_client_that_is_not_open_says_how_to_open_it() -> None:
    with pytest.raises(ClientError, match="use `with BlockingSchedulerClient"):
        BlockingSchedulerClient().schedule("a", topic="t", wait=False)


def test_a_broker_that_is_not_there_is_an_error_in_bounded_time(unused_tcp_port: int) -> None:
    began = time.monotonic()
    with pytest.raises(BrokerError, match=f"cannot reach Kafka at 127.0.0.1:{unused_tcp_port}"):
        BlockingSchedulerClient(f"kafka://127.0.0.1:{unused_tcp_port}", connect_timeout=1).start()
    assert time.monotonic() - began < 10


def test_another_client_takes_over_when_files_change_and_what_is_not_acknowledged_in_time_fails(
    unused_tcp_port: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(blocking_producer, "RENEWAL_S", 0.2)
    password = tmp_path / "password"
    password.write_text("before")
    options = {"bootstrap.servers": f"127.0.0.1:{unused_tcp_port}"}
    producer = BlockingProducer(Renewed(lambda: dict(options), (password,), "logins"), 100_000)
    before, sent = producer.client, producer.send("t", command("a"), Deadline(5))
    password.write_text("renewed")
    with pytest.raises(BrokerError, match="cannot send the command for default/a"):
        sent.result(10)
    told = "1 commands were not acknowledged before the client's certificates were renewed"
    eventually_blocking(lambda: told in caplog.text)
    assert producer.client is not before
    later = producer.send("t", command("b"), Deadline(5))
    assert [each.id for each in producer.close(0)] == ["b"]
    assert later.exception(5) is not None


def test_options_that_librdkafka_refuses_leave_the_client_as_it_is(
    unused_tcp_port: int, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    file = tmp_path / "certificate"
    file.write_text("right")
    options: dict[str, Any] = {"bootstrap.servers": f"127.0.0.1:{unused_tcp_port}"}
    producer = BlockingProducer(Renewed(lambda: dict(options), (file,), "certificates"), 100_000)
    before = producer.client
    options["ssl.certificate.location"] = str(file)
    options["security.protocol"] = "SSL"
    file.write_text("wrong now")
    eventually_blocking(lambda: "goes on with its old certificates" in caplog.text)
    assert producer.client is before
    assert producer.close(0) == []


@pytest.mark.parametrize("wait", [True, False])
def test_a_look_up_ends_when_the_time_of_the_call_is_up(unused_tcp_port: int, wait: Any) -> None:
    address = f"127.0.0.1:{unused_tcp_port}"
    client = BlockingSchedulerClient(address, connect_timeout=120)
    producer = BlockingProducer(unchanging({"bootstrap.servers": address}), 1_000_000)
    client._channel._open_producer = producer
    began = time.monotonic()
    with pytest.raises(BrokerError, match=f"cannot look up topic light-scheduler-{'results' if wait else 'commands'}"):
        client.schedule("a", topic="t", wait=wait, timeout=0.3)
    assert time.monotonic() - began < 60
    producer.close(0)
