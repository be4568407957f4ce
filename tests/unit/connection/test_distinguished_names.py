"""Names of certificates are printed as Java does: the table says what `X500Principal.getName` of Java 25 returns."""

from __future__ import annotations

from pathlib import Path

import pytest
from support.authority import Authority

from light_scheduler.connection import Connection, KafkaSecurity
from light_scheduler.connection.certificates import read_certificates
from light_scheduler.connection.distinguished_names import printed_name
from light_scheduler.connection.principal import principal_of

UTF8, PRINTABLE, T61, IA5, UNIVERSAL, BMP = 0x0C, 0x13, 0x14, 0x16, 0x1C, 0x1E

CN, C, L, ST, STREET, ORG, OU = (bytes([0x55, 0x04, number]) for number in (3, 6, 7, 8, 9, 10, 11))
SERIAL_NUMBER = bytes([0x55, 0x04, 5])
UID, DC = (bytes.fromhex("0992268993f22c6401") + bytes([number]) for number in (1, 25))
EMAIL = bytes.fromhex("2a864886f70d010901")
UNKNOWN = bytes.fromhex("8837 818000 01")

Attribute = tuple[bytes, int, bytes]


def der(tag: int, content: bytes) -> bytes:
    size = len(content)
    if size < 0x80:
        return bytes([tag, size]) + content
    length = size.to_bytes(1 if size < 0x100 else 2)
    return bytes([tag, 0x80 + len(length)]) + length + content


def name(*parts: Attribute | list[Attribute]) -> bytes:
    """Return a distinguished name; a list has several attributes of one part."""
    encoded = b""
    for part in parts:
        attributes = part if isinstance(part, list) else [part]
        encoded += der(0x31, b"".join(der(0x30, der(0x06, oid) + der(tag, text)) for oid, tag, text in attributes))
    return der(0x30, encoded)


def common(text: str) -> bytes:
    return name((CN, UTF8, text.encode()))


@pytest.mark.parametrize(
    ("encoded", "printed"),
    [
        (name(), ""),
        (name((C, PRINTABLE, b"DE"), (ORG, UTF8, b"Example"), (CN, UTF8, b"worker")), "CN=worker,O=Example,C=DE"),
        (
            name((ST, UTF8, b"a"), (L, UTF8, b"b"), (STREET, UTF8, b"c"), (OU, UTF8, b"d")),
            "OU=d,STREET=c,L=b,ST=a",
        ),
        (name((DC, IA5, b"org"), (DC, IA5, b"example"), (UID, UTF8, b"ann")), "UID=ann,DC=example,DC=org"),
        (
            name((CN, UTF8, b"ann"), (EMAIL, IA5, b"ann@example.org")),
            "1.2.840.113549.1.9.1=#160f616e6e406578616d706c652e6f7267,CN=ann",
        ),
        (name((SERIAL_NUMBER, PRINTABLE, b"42"), (CN, UTF8, b"ann")), "CN=ann,2.5.4.5=#13023432"),
        (name((UNKNOWN, UTF8, b"x")), "2.999.16384.1=#0c0178"),
        (name([(CN, UTF8, b"ann"), (UID, UTF8, b"7")], (ORG, UTF8, b"Example")), "O=Example,CN=ann+UID=7"),
        (name([(UID, UTF8, b"7"), (CN, UTF8, b"ann")]), "UID=7+CN=ann"),
        (name([(CN, UTF8, b"ann"), (EMAIL, IA5, b"a@b")]), "CN=ann+1.2.840.113549.1.9.1=#1603614062"),
        (common('a,b+c"d\\e<f>g;h'), 'CN=a\\,b\\+c\\"d\\\\e\\<f\\>g\\;h'),
        (common("#a#b=c"), "CN=\\#a\\#b\\=c"),
        (common("  a  b  "), "CN=\\ \\ a  b\\ \\ "),
        (common("\ra\n\t"), "CN=\\\ra\n\t"),
        (common("   "), "CN=\\ \\ \\ "),
        (common(""), "CN="),
        (common("a\0b"), "CN=a\\00b"),
        (common("Jürgen 東京 🙂"), "CN=Jürgen 東京 🙂"),
        (common("it's 100% /fine*@host"), "CN=it's 100% /fine*@host"),
        (name((CN, T61, "Jürgen".encode("latin-1"))), "CN=Jürgen"),
        (name((CN, BMP, "東京".encode("utf-16-be"))), "CN=東京"),
        (name((CN, UNIVERSAL, "a".encode("utf-32-be"))), "CN=#1c0400000061"),
        (common("x" * 200), "CN=" + "x" * 200),
        (common("x" * 300), "CN=" + "x" * 300),
    ],
)
def test_a_name_is_printed_as_java_prints_it(encoded: bytes, printed: str) -> None:
    assert printed_name(encoded) == printed


def test_a_principal_has_the_email_address_of_its_certificate_as_kafka_sees_it(tmp_path: Path) -> None:
    pair = Authority(tmp_path).sign("ann", email="a@b")
    (certificate,) = read_certificates("ssl_certificate", pair.certificate)
    assert certificate.subject == "1.2.840.113549.1.9.1=#1603614062,CN=ann"
    security = KafkaSecurity(security_protocol="SSL", ssl_certificate=pair.certificate, ssl_key=pair.key)
    assert principal_of(Connection("kafka-1:9092", security)) == f"User:{certificate.subject}"
