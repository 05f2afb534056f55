"""Bodies that no API server would send: broken by hand, and broken by chance from real ones."""

from __future__ import annotations

import gzip
import json
from collections.abc import Callable, Mapping
from random import Random
from typing import Final

from apiserver.kinds.registry import KINDS
from apiserver.schema.json import Json
from judges.fuzz import versions
from judges.generate import case

UID: Final = "7d1c2b3a-uid"
_HEAD: Final = '{"kind":"AdmissionReview","apiVersion":"admission.k8s.io/v1","request":{"uid":"7d1c2b3a-uid",'
_HUGE: Final = 3_000_000
_SPEC: Final = (
    '{"apiVersion":"llmd.ai/v1alpha2","kind":"VariantAutoscaling","metadata":{"name":"x"},"spec":%s}'
)


def _review(spec: str, extra: str = "") -> bytes:
    return (_HEAD + extra + '"operation":"CREATE","namespace":"ns","object":' + _SPEC % spec + "}}").encode()


_VALID: Final = _review('{"modelID":"m","scaleTargetRef":{"kind":"Deployment","name":"d"}}')

UNANSWERABLE: Final[Mapping[str, bytes]] = {
    "nothing": b"",
    "no JSON": b"hello",
    "a byte order mark": b"\xef\xbb\xbf" + _VALID,
    "UTF-16": _VALID.decode().encode("utf-16"),
    "lists without end": b"[" * 100_000,
    "objects without end": b'{"a":' * 100_000,
    "three megabytes of lists": b"[" + b"[]," * (_HUGE // 3) + b"[]]",
    "three megabytes of objects": b"[" + b"{}," * (_HUGE // 3) + b"{}]",
    "a list": b"[]",
    "null": b"null",
    "a number of 5,000 digits": b"1" * 5000,
    "a number beyond floats": b"1e400",
    "no request": b'{"kind":"AdmissionReview","apiVersion":"admission.k8s.io/v1"}',
    "null for a request": b'{"kind":"AdmissionReview","request":null}',
    "a list for a request": b'{"kind":"AdmissionReview","request":[]}',
    "no uid": b'{"kind":"AdmissionReview","request":{"operation":"CREATE"}}',
    "a number for a uid": b'{"kind":"AdmissionReview","request":{"uid":7}}',
    "an empty uid": b'{"kind":"AdmissionReview","request":{"uid":""}}',
    "another kind": b'{"kind":"TokenReview","request":{"uid":"u"}}',
    "a list for a kind": b'{"kind":[],"request":{"uid":"u"}}',
    "zeros": bytes(1000),
}
"""Nobody can know which request these are."""

ANSWERABLE: Final[Mapping[str, bytes]] = {
    "a number for an operation": (_HEAD + '"operation":7}}').encode(),
    "a list for a namespace": (_HEAD + '"operation":"CREATE","namespace":[],"object":{}}}').encode(),
    "text for an object": (_HEAD + '"operation":"CREATE","object":"x"}}').encode(),
    "a list for an object": (_HEAD + '"operation":"CREATE","object":[[]]}}').encode(),
    "text for a kind": _VALID.replace(b'"VariantAutoscaling"', b"[7]"),
    "text for metadata": _VALID.replace(b'{"name":"x"}', b'"x"'),
    "numbers in metadata": _VALID.replace(
        b'{"name":"x"}', b'{"name":7,"labels":8,"annotations":[],"uid":{}}'
    ),
    "text for an old object": _review("{}", '"oldObject":"x",'),
    "a list for user info": _review("{}", '"userInfo":[],'),
    "text for a spec": _review('"x"'),
    "a list for a spec": _review("[]"),
    "not-a-number": _review('{"modelID":NaN}'),
    "infinity": _review('{"accelerator":-Infinity}'),
    "a number beyond floats": _review('{"acceleratorCount":1e400}'),
    "a number of 5,000 digits": _review('{"acceleratorCount":' + "9" * 5000 + "}"),
    "a lone surrogate": _review('{"modelID":"\\ud800"}'),
    "bad UTF-8": _review('{"modelID":"?"}').replace(b"?", b"\xff\xfe"),
    "a raw newline in text": _review('{"modelID":"\n"}'),
    "truncated": _VALID[:-20],
    "more after the end": _VALID + b"}",
    "the same key twice": _review('{"modelID":"m","modelID":7}'),
    "a hundred levels": _review('{"modelID":' + "[" * 100 + "]" * 100 + "}"),
    "a thousand levels": _review('{"modelID":' + "[" * 1000 + "]" * 1000 + "}"),
    "a hundred thousand levels": _review('{"modelID":' + "[" * 100_000 + "]" * 100_000 + "}"),
    "a hundred thousand objects deep": _review('{"modelID":' + '{"a":' * 100_000 + "1" + "}" * 100_001),
    "three megabytes of lists": _review('{"modelID":[' + "[]," * (_HUGE // 3) + "[]]}"),
    "three megabytes of objects": _review('{"modelID":[' + "{}," * (_HUGE // 3) + "{}]}"),
    "three megabytes of text": _review('{"modelID":"' + "x" * _HUGE + '"}'),
    "a hundred thousand unknown members": _review(json.dumps({f"k{n}": n for n in range(100_000)})),
}
"""The uid stands where API servers write it, whatever else is wrong."""

COMPRESSED: Final = gzip.compress(bytes(10 * _HUGE))
"""A small body that is large when it is unpacked."""


def review_of(number: int) -> bytes:
    """Return a real admission review of some kind, an update every third time."""
    kind, version = versions([])[number % sum(len(kind.versions) for kind in KINDS)]
    request: Json = {"uid": f"{UID}-{number}", "operation": "CREATE", "namespace": "ns"}
    request |= {"userInfo": {"username": "u"}, "object": json.loads(case(kind, version, number).body)}
    if number % 3 == 0:
        request |= {
            "operation": "UPDATE",
            "oldObject": json.loads(case(kind, version, number + 1).body),
        }
    review = {"kind": "AdmissionReview", "apiVersion": "admission.k8s.io/v1", "request": request}
    return json.dumps(review, separators=(",", ":")).encode()


def conversion_of(number: int) -> bytes:
    """Return a real conversion review."""
    kind, version = versions(["VariantAutoscaling"])[number % 2]
    wanted = kind.versions[1 - number % 2].name
    objects = [json.loads(case(kind, version, number + more).body) for more in range(3)]
    request = {"uid": f"{UID}-{number}", "desiredAPIVersion": f"{kind.group}/{wanted}", "objects": objects}
    review = {"kind": "ConversionReview", "apiVersion": "apiextensions.k8s.io/v1", "request": request}
    return json.dumps(review, separators=(",", ":")).encode()


def broken(body: bytes, random: Random) -> bytes:
    """Return a body with one to three things done to its bytes."""
    changed = bytearray(body)
    for _ in range(random.randint(1, 3)):
        random.choice(_BREAKS)(changed, random)
    return bytes(changed)


def _flip(body: bytearray, random: Random) -> None:
    if body:
        body[random.randrange(len(body))] ^= 1 << random.randrange(8)


def _delete(body: bytearray, random: Random) -> None:
    start = random.randrange(len(body) + 1)
    del body[start : start + random.choice((1, 1, 5, 50))]


def _insert(body: bytearray, random: Random) -> None:
    start = random.randrange(len(body) + 1)
    body[start:start] = random.choice(_TOKENS)


def _repeat(body: bytearray, random: Random) -> None:
    start = random.randrange(len(body) + 1)
    body[start:start] = body[start : start + random.choice((1, 10, 100))]


def _replace(body: bytearray, random: Random) -> None:
    quotes = [position for position, sign in enumerate(body) if sign in b':,"{[']
    if quotes:
        start = random.choice(quotes)
        body[start : start + 1] = random.choice(_TOKENS)


def _cut(body: bytearray, random: Random) -> None:
    del body[random.randrange(len(body) + 1) :]


_TOKENS: Final = (
    b"null",
    b"{}",
    b"[]",
    b'"',
    b"\\u0000",
    b"\xff",
    b"1e999",
    b"-",
    b",",
    b":[",
    b"\x00",
    b'":{"a":',
)
_BREAKS: Final[tuple[Callable[[bytearray, Random], None], ...]] = (
    _flip,
    _flip,
    _delete,
    _insert,
    _repeat,
    _replace,
    _replace,
    _cut,
)
