"""The webhooks under hostile bodies: within the memory that the manifests allow, while reads go on."""

from __future__ import annotations

import asyncio
import io
import json
import sys
from contextlib import asynccontextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import aiohttp
import yaml
from support.campaign import often
from support.reviews import variant

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable

    from apiserver.schema.json import Json

ROOT: Final = Path(__file__).resolve().parents[3]
MIB: Final = 1 << 20
CONVERSION_MIB, ADMISSION_MIB = 63, 7
PATIENCE_SECONDS = 120
READS_AT_LEAST = 20
HEAD: Final = '{"kind":"ConversionReview","apiVersion":"apiextensions.k8s.io/v1","request":{"uid":"u",'


def _filled(entry: str, mebibytes: int) -> str:
    return ",".join([entry] * (mebibytes * MIB // (len(entry) + 1)))


def _list(entry: str) -> bytes:
    objects = _filled(entry, CONVERSION_MIB)
    return f'{HEAD}"desiredAPIVersion":"llmd.ai/v1alpha2","objects":[{objects}]}}}}'.encode()


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
    objects = ",".join([value] * (CONVERSION_MIB * MIB // (len(value) + 1)))
    return f'{HEAD}"desiredAPIVersion":"llmd.ai/v1alpha2","objects":[{objects}]}}}}'.encode()


HOSTILE: Final[tuple[tuple[str, Callable[[], bytes]], ...]] = (
    ("/convert", lambda: _list("[]")),
    ("/convert", lambda: _list("null")),
    ("/convert", lambda: _list('{"kind":"VariantAutoscaling"}')),
    ("/convert", lambda: _list(_smallest())),
    ("/convert", lambda: _list(json.dumps(variant(version="v1alpha1", odd="x" * 9000)))),
    ("/convert", lambda: _object("{}")),
    ("/convert", lambda: _object('{"a":[]}')),
    ("/convert", _members),
    ("/convert", lambda: b"[" * CONVERSION_MIB * MIB),
    ("/convert", lambda: HEAD.encode() + b'"x":"' + "a\U0001f600".encode() * (CONVERSION_MIB * MIB // 5)),
    ("/validate", lambda: _review("[]")),
    ("/validate", lambda: _review('{"a":1}')),
)
"""(path, body): what takes many times its size when it is decoded carelessly."""


@asynccontextmanager
async def attacked() -> AsyncIterator[tuple[int, str]]:
    """Run the process; yield its id and where it listens."""
    process = await asyncio.create_subprocess_exec(
        *(sys.executable, str(Path(__file__).with_name("attacked.py"))),
        stdout=asyncio.subprocess.PIPE,
        env={"PYTHONPATH": f"{ROOT}:{ROOT / 'tests'}"},
    )
    try:
        assert process.stdout is not None
        port = int(await process.stdout.readline())
        yield process.pid, f"http://127.0.0.1:{port}"
        assert process.returncode is None
    finally:
        if process.returncode is None:
            process.terminate()
        await process.wait()


async def _read(session: aiohttp.ClientSession, address: str, version: str) -> Json:
    """Convert one object, as a read of another version than the stored one does."""
    wanted = f"llmd.ai/{version}"
    request = {"uid": "u", "desiredAPIVersion": wanted, "objects": [variant(version="v1alpha1")]}
    body = {"kind": "ConversionReview", "apiVersion": "apiextensions.k8s.io/v1", "request": request}
    async with session.post(f"{address}/convert", json=body) as answer:
        found: dict[str, Any] = await answer.json()
        result: Json = found["response"]["result"]
        return result


def _peak_mebibytes(process: int) -> float:
    status = Path(f"/proc/{process}/status").read_text(encoding="ascii")
    (line,) = (line for line in status.splitlines() if line.startswith("VmHWM:"))
    return int(line.split()[1]) / 1024


def _limit_mebibytes() -> int:
    manifests = yaml.safe_load_all(
        (ROOT / "manifests" / "base" / "deployments.yaml").read_text(encoding="utf-8")
    )
    (webhooks,) = (item for item in manifests if item["metadata"]["name"] == "stowplan-webhooks")
    limit = webhooks["spec"]["template"]["spec"]["containers"][0]["resources"]["limits"]["memory"]
    return int(limit.removesuffix("Mi"))


async def test_hostile_bodies_neither_end_the_process_nor_stop_reads() -> None:
    """Bodies of the largest size, several at once; with a tenth of the memory to spare."""
    timeout = aiohttp.ClientTimeout(total=PATIENCE_SECONDS)
    async with attacked() as (process, address), aiohttp.ClientSession(timeout=timeout) as session:

        async def attack(path: str, make: Callable[[], bytes]) -> None:
            body = make()
            senders = [session.post(f"{address}{path}", data=io.BytesIO(body)) for _ in range(often(2))]
            for answer in await asyncio.gather(*senders, return_exceptions=True):
                if isinstance(answer, aiohttp.ClientResponse):
                    await answer.read()
                elif not isinstance(answer, aiohttp.ClientError):
                    raise answer

        async def attack_all() -> None:
            for path, make in HOSTILE:
                await attack(path, make)

        attacking = asyncio.create_task(attack_all())
        results: list[Json] = []
        while not attacking.done():
            results.append(await _read(session, address, ("v1alpha1", "v1alpha2")[len(results) % 2]))
            await asyncio.sleep(0)
        await attacking
        peak = _peak_mebibytes(process)

    assert len(results) >= READS_AT_LEAST
    assert all(result == {"status": "Success"} for result in results)
    assert peak <= 0.9 * _limit_mebibytes(), f"{peak:.0f} MiB"
