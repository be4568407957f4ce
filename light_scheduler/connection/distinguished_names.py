"""Names of certificates as Kafka's brokers print them, so that a principal can be copied into an ACL.

Brokers use Java's form of RFC 2253 (`X500Principal.getName`): the last part of a name comes first; nine types have
keywords, and every other type, such as an e-mail address, is written as its OID with the value in hexadecimal. Java 17
differs from later versions for non-ASCII texts of types older than UTF8String: it reads them as UTF-8.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

_KEYWORDS = {
    "2.5.4.3": "CN",
    "2.5.4.6": "C",
    "2.5.4.7": "L",
    "2.5.4.8": "ST",
    "2.5.4.9": "STREET",
    "2.5.4.10": "O",
    "2.5.4.11": "OU",
    "0.9.2342.19200300.100.1.1": "UID",
    "0.9.2342.19200300.100.1.25": "DC",
}
_TEXTS = {0x0C: "utf-8", 0x13: "latin-1", 0x14: "latin-1", 0x16: "latin-1", 0x1B: "latin-1", 0x1E: "utf-16-be"}
"""Encodings of texts, by tag: UTF8String, PrintableString, T61String, IA5String, GeneralString, BMPString."""

_VERSION = 0xA0
_SUBJECT = 4
"""Index of the subject in a certificate, after serial number, algorithm, issuer and validity."""

_ESCAPED = frozenset(',=+<>#;"\\')
_BLANK = " \r"


class _Element(NamedTuple):
    """A DER value: its tag, its content, and all of its bytes."""

    tag: int
    content: bytes
    encoded: bytes


def subject_of(tbs_certificate: bytes) -> str:
    """Return the subject of a certificate, given the DER of its signed part, which must be well-formed."""
    [certificate] = _elements(tbs_certificate)
    parts = [part for part in _elements(certificate.content) if part.tag != _VERSION]
    return printed_name(parts[_SUBJECT].encoded)


def printed_name(name: bytes) -> str:
    """Return a distinguished name, given as well-formed DER, as text."""
    [sequence] = _elements(name)
    parts = ["+".join(map(_attribute, _elements(part.content))) for part in _elements(sequence.content)]
    return ",".join(reversed(parts))


def _attribute(attribute: _Element) -> str:
    oid, value = _elements(attribute.content)
    dotted = _dotted(oid.content)
    keyword, encoding = _KEYWORDS.get(dotted), _TEXTS.get(value.tag)
    if keyword is None or encoding is None:
        return f"{keyword or dotted}=#{value.encoded.hex()}"
    return f"{keyword}={_escaped(value.content.decode(encoding, errors='replace'))}"


def _escaped(text: str) -> str:
    text = "".join(f"\\{letter}" if letter in _ESCAPED else letter for letter in text).replace("\0", "\\00")
    begin = len(text) - len(text.lstrip(_BLANK))
    end = max(begin, len(text.rstrip(_BLANK)))
    outside = ["".join(f"\\{blank}" for blank in blanks) for blanks in (text[:begin], text[end:])]
    return text[begin:end].join(outside)


def _dotted(oid: bytes) -> str:
    """Return an object identifier in dotted form, decoded from base 128; the first value has the first two numbers."""
    numbers, number = [], 0
    for byte in oid:
        number = number << 7 | byte & 0x7F
        if byte < 0x80:
            numbers.append(number)
            number = 0
    first = min(numbers[0] // 40, 2)
    return ".".join(map(str, (first, numbers[0] - 40 * first, *numbers[1:])))


def _elements(content: bytes) -> Iterator[_Element]:
    """Yield consecutive values, each with tag, length and content. A long length is preceded by its own size."""
    start = 0
    while start < len(content):
        length, begin = content[start + 1], start + 2
        if length >= 0x80:
            begin += length & 0x7F
            length = int.from_bytes(content[start + 2 : begin])
        end = begin + length
        yield _Element(content[start], content[begin:end], content[start:end])
        start = end
