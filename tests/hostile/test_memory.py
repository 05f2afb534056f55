"""Hostile request bodies: memory stays within the manifests' limit, and reads are still answered."""

from __future__ import annotations

import asyncio
import io
import json
from typing import TYPE_CHECKING, Final

import aiohttp
from support.attacked import Attacked, attacked
from support.campaign import rounds, share, tell
from support.reviews import variant

from hack.calling.conversion_reviews import SERVER_NAME

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

MIB: Final = 1 << 20
CONVERSION_MIB, ADMISSION_MIB = 63, 7
PATIENCE_SECONDS = 120
AT_ONCE: Final = 2
MEMBERS_MIB: Final = share(16, full=CONVERSION_MIB)
"""Size of a body that takes seconds: the size of an object determines the peak, not their number."""

ROUNDS: Final = share(1, full=42)
HEAD: Final = '{"kind":"ConversionReview","apiVersion":"apiextensions.k8s.io/v1","request":{"uid":"u",'


def _filled(entry: str, mebibytes: int) -> str:
    return ",".join([entry] * (mebibytes * MIB // (len(entry) + 1)))


def _list(entry: str) -> bytes:
    objects = _filled(entry, CONVERSION_MIB)
    return f'{HEAD}"desiredAPIVersion":"llmd.ai/v1alpha2","objects":[{objects}]}}}}'.encode()


def _owners() -> bytes:
    """Return an object with very many owners."""
    owners = _filled("{}", CONVERSION_MIB)
    value = (
        '{"apiVersion":"llmd.ai/v1alpha1","kind":"VariantAutoscaling","metadata":{"name":"a",'
        f'"ownerReferences":[{owners}]}},"spec":{{"sloClassRef":{{}},"modelID":"m","variantID":"m-A100-1",'
        '"accelerator":"A100","acceleratorCount":1,"variantProfile":{"perfParms":{}}}}'
    )
    return f'{HEAD}"desiredAPIVersion":"llmd.ai/v1alpha2","objects":[{value}]}}}}'.encode()


def _smallest() -> str:
    return '{"apiVersion":"llmd.ai/v1alpha1","kind":"VariantAutoscaling","metadata":{},"spec":{}}'


def _object(entry: str) -> bytes:
    value = json.dumps(variant(version="v1alpha1"))[:-1]
    objects = f'{value},"odd":[{_filled(entry, CONVERSION_MIB)}]}}'
    return f'{HEAD}"desiredAPIVersion":"llmd.ai/v1alpha2","objects":[{objects}]}}}}'.encode()


def _review(entry: str) -> bytes:
    value = json.dumps(variant())[:-1]
    odd = f'{value},"odd":[{_filled(entry, ADMISSION_MIB)}]}}'
    kind = '"kind":{"group":"llmd.ai","version":"v1alpha2","kind":"VariantAutoscaling"}'
    request = f'{{"uid":"u","operation":"CREATE",{kind},"object":{odd}}}'
    return f'{{"kind":"AdmissionReview","request":{request}}}'.encode()


def _members() -> bytes:
    spec = ",".join(f'"{number:x}":0' for number in range(4 * MIB // 10))
    value = (
        f'{{"apiVersion":"llmd.ai/v1alpha1","kind":"VariantAutoscaling","metadata":{{}},"spec":{{{spec}}}}}'
    )
    objects = ",".join([value] * (MEMBERS_MIB * MIB // (len(value) + 1)))
    return f'{HEAD}"desiredAPIVersion":"llmd.ai/v1alpha2","objects":[{objects}]}}}}'.encode()


HOSTILE: Final[tuple[tuple[str, Callable[[], bytes]], ...]] = (
    ("/convert", lambda: _list("[]")),
    ("/convert", lambda: _list("null")),
    ("/convert", lambda: _list('{"kind":"VariantAutoscaling"}')),
    ("/convert", lambda: _list(_smallest())),
    ("/convert", lambda: _list(json.dumps(variant(version="v1alpha1", odd="x" * 9000)))),
    ("/convert", lambda: _object("{}")),
    ("/convert", lambda: _object('{"a":[]}')),
    ("/convert", _owners),
    ("/convert", _members),
    ("/convert", lambda: b"[" * CONVERSION_MIB * MIB),
    ("/convert", lambda: HEAD.encode() + b'"x":"' + "a\U0001f600".encode() * (CONVERSION_MIB * MIB // 5)),
    ("/validate", lambda: _review("[]")),
    ("/validate", lambda: _review('{"a":1}')),
)
"""(path, body) of requests that need many times their size in memory if decoded naively."""


async def test_hostile_bodies_neither_end_the_process_nor_stop_reads(tmp_path: Path) -> None:
    """Several bodies of the maximum size are sent at once; a tenth of the memory must stay free."""
    sent = 0
    async with attacked(tmp_path, patience_seconds=PATIENCE_SECONDS) as target:
        for _ in rounds(ROUNDS):
            for path, make in HOSTILE:
                await _attack(target, path, make())
                sent += AT_ONCE
        tell(
            f"{sent} hostile bodies: {len(target.results)} reads meanwhile, the"
            f" slowest {target.slowest_seconds:.1f} s, peak {target.peak_mebibytes():.0f} MiB"
        )


async def _attack(target: Attacked, path: str, body: bytes) -> None:
    answers = (_send(target, path, body) for _ in range(AT_ONCE))
    for error in await asyncio.gather(*answers, return_exceptions=True):
        if error is not None and not isinstance(error, aiohttp.ClientError):
            raise error


async def _send(target: Attacked, path: str, body: bytes) -> None:
    """Send a body and read the answer at once: the server does not wait for slow readers."""
    url, data = target.url(path), io.BytesIO(body)
    async with target.session.post(url, data=data, server_hostname=SERVER_NAME) as answer:
        await answer.read()
