"""Certificate authorities, certificates and kubeconfigs for one control plane, with P-256 keys."""

from __future__ import annotations

import base64
import datetime as dt
import ipaddress
import json
from dataclasses import dataclass
from pathlib import Path
from typing import Self

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import ExtendedKeyUsageOID, NameOID

_LIFE = dt.timedelta(days=365)
_BACKDATED = dt.timedelta(hours=1)


@dataclass(frozen=True, kw_only=True, slots=True)
class KeyPair:
    """A certificate and its private key, both as PEM."""

    certificate: bytes
    key: bytes

    @classmethod
    def read(cls, directory: Path, name: str) -> Self:
        """Read the files that `write` creates."""
        certificate, key = ((directory / f"{name}.{suffix}").read_bytes() for suffix in ("crt", "key"))
        return cls(certificate=certificate, key=key)

    def write(self, directory: Path, name: str) -> None:
        """Write `NAME.crt` and `NAME.key`."""
        (directory / f"{name}.crt").write_bytes(self.certificate)
        write_secret(directory / f"{name}.key", self.key)


class Authority:
    """A certificate authority for server and client certificates."""

    def __init__(self, pair: KeyPair) -> None:
        self.pair = pair
        key = serialization.load_pem_private_key(pair.key, password=None)
        assert isinstance(key, ec.EllipticCurvePrivateKey)
        self._key = key
        self._name = x509.load_pem_x509_certificate(pair.certificate).subject

    @classmethod
    def create(cls, common_name: str) -> Self:
        """Create a key and a self-signed certificate."""
        key = ec.generate_private_key(ec.SECP256R1())
        name = _name(common_name, groups=())
        certificate = (
            _builder(name, issuer=name, key=key, issuer_key=key)
            .add_extension(x509.BasicConstraints(ca=True, path_length=0), critical=True)
            .add_extension(_key_usage(signs_certificates=True), critical=True)
            .sign(key, hashes.SHA256())
        )
        return cls(KeyPair(certificate=_pem(certificate), key=private_pem(key)))

    def server(self, common_name: str, *, names: tuple[str, ...], is_client: bool = False) -> KeyPair:
        """Issue a server certificate for these DNS names and addresses; `is_client` lets it call others."""
        alternatives = x509.SubjectAlternativeName([_general_name(name) for name in names])
        purposes = [
            ExtendedKeyUsageOID.SERVER_AUTH,
            *([ExtendedKeyUsageOID.CLIENT_AUTH] if is_client else []),
        ]
        return self._leaf(common_name, groups=(), purposes=purposes, names=alternatives)

    def client(self, common_name: str, *, groups: tuple[str, ...] = ()) -> KeyPair:
        """Issue a client certificate: the common name is the user, organizations are groups."""
        return self._leaf(common_name, groups=groups, purposes=[ExtendedKeyUsageOID.CLIENT_AUTH], names=None)

    def _leaf(
        self,
        common_name: str,
        *,
        groups: tuple[str, ...],
        purposes: list[x509.ObjectIdentifier],
        names: x509.SubjectAlternativeName | None,
    ) -> KeyPair:
        key = ec.generate_private_key(ec.SECP256R1())
        builder = (
            _builder(_name(common_name, groups=groups), issuer=self._name, key=key, issuer_key=self._key)
            .add_extension(x509.BasicConstraints(ca=False, path_length=None), critical=True)
            .add_extension(_key_usage(signs_certificates=False), critical=True)
            .add_extension(x509.ExtendedKeyUsage(purposes), critical=False)
        )
        if names is not None:
            builder = builder.add_extension(names, critical=False)
        return KeyPair(certificate=_pem(builder.sign(self._key, hashes.SHA256())), key=private_pem(key))


def signing_key() -> tuple[bytes, bytes]:
    """Create a key pair as PEM for signing and verifying service account tokens."""
    key = ec.generate_private_key(ec.SECP256R1())
    public = key.public_key().public_bytes(
        serialization.Encoding.PEM, serialization.PublicFormat.SubjectPublicKeyInfo
    )
    return private_pem(key), public


def private_pem(key: ec.EllipticCurvePrivateKey) -> bytes:
    """Return a private key as unencrypted PEM, in the format that Kubernetes reads for every purpose."""
    return key.private_bytes(
        serialization.Encoding.PEM,
        serialization.PrivateFormat.TraditionalOpenSSL,
        serialization.NoEncryption(),
    )


def write_secret(path: Path, content: bytes) -> None:
    """Write a file that only its owner can read."""
    path.touch(mode=0o600)
    path.write_bytes(content)


def _builder(
    subject: x509.Name,
    *,
    issuer: x509.Name,
    key: ec.EllipticCurvePrivateKey,
    issuer_key: ec.EllipticCurvePrivateKey,
) -> x509.CertificateBuilder:
    now = dt.datetime.now(dt.UTC)
    return (
        x509.CertificateBuilder()
        .subject_name(subject)
        .issuer_name(issuer)
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - _BACKDATED)
        .not_valid_after(now + _LIFE)
        .add_extension(x509.SubjectKeyIdentifier.from_public_key(key.public_key()), critical=False)
        .add_extension(
            x509.AuthorityKeyIdentifier.from_issuer_public_key(issuer_key.public_key()), critical=False
        )
    )


def _key_usage(*, signs_certificates: bool) -> x509.KeyUsage:
    return x509.KeyUsage(
        digital_signature=True,
        key_cert_sign=signs_certificates,
        crl_sign=signs_certificates,
        content_commitment=False,
        key_encipherment=False,
        data_encipherment=False,
        key_agreement=False,
        encipher_only=False,
        decipher_only=False,
    )


def _name(common_name: str, *, groups: tuple[str, ...]) -> x509.Name:
    organisations = [x509.NameAttribute(NameOID.ORGANIZATION_NAME, group) for group in groups]
    return x509.Name([*organisations, x509.NameAttribute(NameOID.COMMON_NAME, common_name)])


def _general_name(name: str) -> x509.GeneralName:
    try:
        return x509.IPAddress(ipaddress.ip_address(name))
    except ValueError:
        return x509.DNSName(name)


def _pem(certificate: x509.Certificate) -> bytes:
    return certificate.public_bytes(serialization.Encoding.PEM)


@dataclass(frozen=True, kw_only=True, slots=True)
class ClusterEndpoint:
    """The URL of a cluster's API server and the CA that authenticates it."""

    server: str
    """Such as `https://127.64.128.2:6443`."""

    authority: bytes
    """Certificate of the CA that issued the server's certificate, as PEM."""


def write_certificate_kubeconfig(path: Path, cluster: ClusterEndpoint, *, pair: KeyPair) -> None:
    """Write a kubeconfig (JSON is YAML) for a client with a certificate."""
    user = {"client-certificate-data": _base64(pair.certificate), "client-key-data": _base64(pair.key)}
    write_secret(path, _document(cluster, user=user, namespace="default"))


def write_token_kubeconfig(path: Path, cluster: ClusterEndpoint, *, token: str, namespace: str) -> None:
    """Write a kubeconfig for a client with a bearer token and a default namespace."""
    write_secret(path, _document(cluster, user={"token": token}, namespace=namespace))


def _document(cluster: ClusterEndpoint, *, user: dict[str, str], namespace: str) -> bytes:
    name = "stowplan"
    document = {
        "apiVersion": "v1",
        "kind": "Config",
        "current-context": name,
        "clusters": [
            {
                "name": name,
                "cluster": {
                    "server": cluster.server,
                    "certificate-authority-data": _base64(cluster.authority),
                },
            }
        ],
        "users": [{"name": name, "user": user}],
        "contexts": [{"name": name, "context": {"cluster": name, "user": name, "namespace": namespace}}],
    }
    return json.dumps(document, indent=2).encode()


def _base64(content: bytes) -> str:
    return base64.b64encode(content).decode()


MASTERS = "system:masters"
"""The group with all permissions."""

PROXY_CLIENT = "front-proxy-client"
"""The common name with which kube-apiserver calls aggregated API servers."""

_SERVER_NAMES = (
    "kubernetes",
    "kubernetes.default",
    "kubernetes.default.svc",
    "localhost",
    "127.0.0.1",
    "10.96.0.1",  # the Service `kubernetes`
)


def write_pki(directory: Path, *, server: str, address: str) -> ClusterEndpoint:
    """Write all files; `address` is that of the components, `server` the URL of kube-apiserver."""
    authority, proxy_authority = Authority.create("kubernetes"), Authority.create("front-proxy")
    authority.pair.write(directory, "ca")
    proxy_authority.pair.write(directory, "front-proxy-ca")
    authority.server("kube-apiserver", names=(*_SERVER_NAMES, address)).write(directory, "apiserver")
    authority.server("localhost", names=(address,)).write(directory, "component")
    proxy_authority.client(PROXY_CLIENT).write(directory, "front-proxy-client")
    authority.client("kube-apiserver", groups=(MASTERS,)).write(directory, "kubelet-client")
    private, public = signing_key()
    write_secret(directory / "service-account.key", private)
    (directory / "service-account.pub").write_bytes(public)
    cluster = ClusterEndpoint(server=server, authority=authority.pair.certificate)
    _write_users(directory, authority, cluster)
    return cluster


def _write_users(directory: Path, authority: Authority, cluster: ClusterEndpoint) -> None:
    users = {
        "admin": (MASTERS,),
        "kwok": (MASTERS,),  # simulates the kubelet of every node, which no default role allows
        "system:kube-controller-manager": (),
        "system:kube-scheduler": (),
    }
    for user, groups in users.items():
        name = user.removeprefix("system:")
        pair = authority.client(user, groups=groups)
        write_certificate_kubeconfig(directory / f"{name}.kubeconfig", cluster, pair=pair)
        if user == "admin":
            pair.write(directory, "admin")  # for the readiness probe
