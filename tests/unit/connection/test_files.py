"""Files of settings: secrets and certificates, read again when they change, and named when they cannot be."""

from __future__ import annotations

import logging
import os
import ssl
from datetime import timedelta
from pathlib import Path

import pytest
from support.authority import Authority

from light_scheduler.connection import Connection, KafkaSecurity
from light_scheduler.connection.certificates import read_certificates
from light_scheduler.connection.files import SecretFile
from light_scheduler.connection.redaction import WithoutLogins
from light_scheduler.connection.renewed_files import RETRY_S, Renewed
from light_scheduler.connection.tls import RenewedContext, kafka_context, tls_context, trusting
from light_scheduler.errors import ConfigurationError


@pytest.fixture
def authority(tmp_path: Path) -> Authority:
    return Authority(tmp_path)


def test_a_secret_in_a_file_is_read_again_when_the_file_changes(tmp_path: Path) -> None:
    path = tmp_path / "password"
    path.write_text("first\n")
    file = SecretFile("sasl_password_file", path)
    assert file.read().reveal() == "first"
    path.write_text("second one\r\n")
    assert file.read().reveal() == "second one"
    path.write_bytes("third\r\n".encode("utf-8-sig"))
    assert file.read().reveal() == "third", "an editor puts a byte order mark in front"


def test_a_secret_file_that_is_gone_keeps_its_last_value_and_says_so(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    path = tmp_path / "password"
    path.write_text("first")
    file = SecretFile("sasl_password_file", path)
    file.read()
    path.unlink()
    assert file.read().reveal() == "first"
    assert "sasl_password_file" in caplog.text
    assert "first" not in caplog.text


@pytest.mark.parametrize(("content", "reason"), [(None, "No such file"), (b"", "is empty"), (b"\xff\xfe", "UTF-8")])
def test_a_secret_file_without_a_secret_is_named(tmp_path: Path, content: bytes | None, reason: str) -> None:
    path = tmp_path / "password"
    if content is not None:
        path.write_bytes(content)
    with pytest.raises(ConfigurationError, match=f"setting sasl_password_file: .*{reason}"):
        SecretFile("sasl_password_file", path).read()


def test_a_pair_of_certificate_and_key_is_taken_with_its_password(authority: Authority, tmp_path: Path) -> None:
    pair = authority.sign("user", password="opens")
    (tmp_path / "password").write_text("opens\n")
    own = {
        "security_protocol": "SSL",
        "ssl_ca": authority.path,
        "ssl_certificate": pair.certificate,
        "ssl_key": pair.key,
    }
    context = tls_context(KafkaSecurity(**own, ssl_key_password_file=tmp_path / "password"))  # type: ignore[arg-type]
    assert context.check_hostname
    assert context.verify_mode is ssl.CERT_REQUIRED


def fault(**settings: object) -> str:
    with pytest.raises(ConfigurationError) as caught:
        tls_context(KafkaSecurity(security_protocol="SSL", **settings))  # type: ignore[arg-type]
    return str(caught.value)


def test_what_is_wrong_with_a_file_is_said_with_its_setting(authority: Authority, tmp_path: Path) -> None:
    pair, other = authority.sign("user"), authority.sign("other", password="opens")
    old = authority.sign("old", begin=timedelta(days=-9), end=timedelta(days=-2))
    early = authority.sign("early", begin=timedelta(days=2))
    missing = tmp_path / "missing.pem"
    assert "setting ssl_ca: " in (said := fault(ssl_ca=missing))
    assert "No such file or directory): name a file that exists" in said
    assert "setting ssl_ca: " in (said := fault(ssl_ca=pair.key))
    assert "no certificate in PEM form" in said
    assert "setting ssl_certificate: " in (said := fault(ssl_certificate=old.certificate, ssl_key=old.key))
    assert "the certificate of CN=old" in said
    assert "expired on" in said
    assert "check the clock" in fault(ssl_certificate=early.certificate, ssl_key=early.key)
    assert fault(ssl_certificate=pair.certificate, ssl_key=missing).startswith("setting ssl_key: ")
    assert "is not the key of the certificate" in fault(ssl_certificate=pair.certificate, ssl_key=early.key)
    assert "no private key in PEM form" in fault(ssl_certificate=pair.certificate)
    locked = {"ssl_certificate": other.certificate, "ssl_key": other.key}
    assert "setting ssl_key_password: is not set" in fault(**locked)
    assert "setting ssl_key_password: does not open" in (said := fault(**locked, ssl_key_password="pa55word"))
    assert "pa55word" not in said
    assert "setting ssl_key_password: does not open" in (said := fault(**locked, ssl_key_password="pa55word" * 200))
    assert "pa55word" not in said


@pytest.mark.skipif(os.geteuid() == 0, reason="root may read every file")
def test_a_key_that_may_not_be_read_is_named(authority: Authority) -> None:
    pair = authority.sign("user")
    pair.key.chmod(0)
    assert "setting ssl_key: " in (said := fault(ssl_certificate=pair.certificate, ssl_key=pair.key))
    assert "let the user that runs this read it" in said


def test_new_connections_use_renewed_files_and_wrong_ones_leave_the_old_in_use(
    authority: Authority, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.INFO)
    pair = authority.sign("user")
    settings = {"ssl_ca": authority.path, "ssl_certificate": pair.certificate, "ssl_key": pair.key}
    context = kafka_context(KafkaSecurity(security_protocol="SSL", **settings))  # type: ignore[arg-type]

    def made() -> ssl.SSLContext:
        return context.wrap_bio(ssl.MemoryBIO(), ssl.MemoryBIO(), server_hostname="kafka").context

    first = made()
    assert made() is first
    key = pair.key.read_bytes()
    pair.key.write_bytes(b"half of it")
    assert made() is first
    assert "the old ones stay in use: setting ssl_key" in caplog.text
    pair.key.write_bytes(key)
    second = made()
    assert second is not first
    authority.sign("user")
    assert made() is not second
    assert "new connections use them" in caplog.text


def test_the_configuration_of_librdkafka_becomes_another_one_with_a_renewed_password(tmp_path: Path) -> None:
    file = tmp_path / "password"
    file.write_text("before")
    security = KafkaSecurity(
        security_protocol="SASL_PLAINTEXT",
        sasl_mechanism="SCRAM-SHA-256",
        sasl_username="scheduler",
        sasl_password_file=file,
    )
    options = Connection("kafka:9092", security).renewed_librdkafka({"client.id": "mine"})
    before = options.current()
    assert options.current() is before
    assert (before["sasl.password"], before["client.id"]) == ("before", "mine")
    file.write_text("renewed")
    after = options.current()
    assert after is not before
    assert (after["sasl.password"], after["client.id"]) == ("renewed", "mine")


def test_files_that_become_right_without_a_change_are_used_within_seconds(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.INFO)
    now, fault, made = 1_000.0, "", 0
    file = tmp_path / "certificate"
    file.write_text("first")

    def make() -> ssl.SSLContext:
        nonlocal made
        made += 1
        if fault:
            raise ConfigurationError("ssl_certificate", fault)
        return ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)

    context = RenewedContext(Renewed(make, (file,), "certificates for HTTP", lambda: now))

    def used() -> ssl.SSLContext:
        return context.wrap_bio(ssl.MemoryBIO(), ssl.MemoryBIO(), server_side=True).context

    context_before = used()
    file.write_text("second, which is not valid before noon")
    fault = "is not valid yet"
    for _ in range(3):
        assert used() is context_before
        now += RETRY_S / 2
    assert made == 3, "at the change, and once in RETRY_S"
    assert caplog.text.count("is not valid yet") == 1
    fault = ""
    now += RETRY_S
    assert used() is not context_before
    assert "new connections use them" in caplog.text
    now += 10 * RETRY_S
    used()
    assert made == 4


def test_a_certificate_says_whom_it_names(authority: Authority) -> None:
    pair = authority.sign("user")
    (certificate,) = read_certificates("ssl_certificate", pair.certificate)
    assert certificate.subject == "CN=user"
    assert certificate.begin < certificate.end


class SaslAuthenticateRequest_v0:  # noqa: N801 (as aiokafka calls it)
    def __repr__(self) -> str:
        return "SaslAuthenticateRequest_v0(sasl_auth_bytes=b'\\0user\\0planted')"


def test_logins_do_not_get_into_logs() -> None:
    record = logging.LogRecord("aiokafka.conn", 10, "", 1, "Request: %s", (SaslAuthenticateRequest_v0(),), None)
    assert WithoutLogins().filter(record)
    assert record.getMessage() == "Request: SaslAuthenticateRequest_v0(********)"


def test_a_bundle_that_is_not_all_there_yet_is_named_by_its_setting(authority: Authority, tmp_path: Path) -> None:
    whole = authority.path.read_bytes()
    bundle = tmp_path / "ca.pem"
    bundle.write_bytes(whole + whole[: len(whole) // 2])
    with pytest.raises(ConfigurationError, match="ssl_ca"):
        trusting("ssl_ca", bundle)
