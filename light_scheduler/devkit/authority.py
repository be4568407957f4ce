"""A certificate authority for listeners of the embedded broker."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from ipaddress import ip_address
from pathlib import Path
from typing import NamedTuple

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID

from light_scheduler.clock import SystemClock

DAY = timedelta(days=1)


class Pair(NamedTuple):
    """PEM files: a certificate and its key; both of them together for servers."""

    certificate: Path
    key: Path
    together: Path


class Authority:
    """Signs certificates into a folder. Uses elliptic keys, since RSA keys are slow to generate."""

    def __init__(self, folder: Path, name: str = "authority") -> None:
        self._folder = folder
        self._name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, name)])
        self._key = ec.generate_private_key(ec.SECP256R1())
        own = self._builder(self._name, self._key, -DAY, 30 * DAY)
        own = own.add_extension(x509.BasicConstraints(ca=True, path_length=None), critical=True)
        usage = dict.fromkeys(
            ("content_commitment", "key_encipherment", "data_encipherment", "key_agreement", "encipher_only"), False
        )
        own = own.add_extension(
            x509.KeyUsage(digital_signature=True, key_cert_sign=True, crl_sign=True, decipher_only=False, **usage),
            critical=True,
        )
        own = own.add_extension(self._key_id, critical=False)
        self.path = folder / f"{name}.pem"
        self.path.write_bytes(own.sign(self._key, hashes.SHA256()).public_bytes(serialization.Encoding.PEM))

    @property
    def _key_id(self) -> x509.SubjectKeyIdentifier:
        return x509.SubjectKeyIdentifier.from_public_key(self._key.public_key())

    def sign(
        self,
        common_name: str,
        *,
        host: str = "127.0.0.1",
        begin: timedelta = -DAY,
        end: timedelta = 30 * DAY,
        password: str | None = None,
        into: str | None = None,
        email: str | None = None,
    ) -> Pair:
        """Return a certificate for a host. `begin` and `end` are relative to now. `into` is the base name of the
        files."""
        key = ec.generate_private_key(ec.SECP256R1())
        subject = [x509.NameAttribute(NameOID.COMMON_NAME, common_name)]
        if email is not None:
            subject.append(x509.NameAttribute(NameOID.EMAIL_ADDRESS, email))
        builder = self._builder(x509.Name(subject), key, begin, end)
        builder = builder.add_extension(x509.SubjectAlternativeName([_alternative(host)]), critical=False)
        builder = builder.add_extension(
            x509.AuthorityKeyIdentifier.from_issuer_subject_key_identifier(self._key_id), critical=False
        )
        certificate = builder.sign(self._key, hashes.SHA256()).public_bytes(serialization.Encoding.PEM)
        encryption: serialization.KeySerializationEncryption = serialization.NoEncryption()
        if password is not None:
            encryption = serialization.BestAvailableEncryption(password.encode())
        private = key.private_bytes(serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, encryption)
        name = into or common_name
        pair = Pair(*(self._folder / f"{name}.{part}.pem" for part in ("certificate", "key", "together")))
        pair.certificate.write_bytes(certificate)
        pair.key.write_bytes(private)
        pair.together.write_bytes(private + certificate)
        return pair

    def _builder(
        self, subject: x509.Name, key: ec.EllipticCurvePrivateKey, begin: timedelta, end: timedelta
    ) -> x509.CertificateBuilder:
        now = datetime.fromtimestamp(SystemClock().now() / 1_000, UTC)
        return (
            x509.CertificateBuilder()
            .subject_name(subject)
            .issuer_name(self._name)
            .public_key(key.public_key())
            .serial_number(x509.random_serial_number())
            .not_valid_before(now + begin)
            .not_valid_after(now + end)
        )


def _alternative(host: str) -> x509.GeneralName:
    try:
        return x509.IPAddress(ip_address(host))
    except ValueError:
        return x509.DNSName(host)
