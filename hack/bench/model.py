"""The large object of the benchmarks: a Model of 8 KB, as the API server hands it on."""

from __future__ import annotations

import copy
import functools
from pathlib import Path
from typing import Final

import yaml

from apiserver.schema.json import Json
from hack.bench.received import received

_MODEL: Final = Path(__file__).with_name("model.yaml")


def model() -> Json:
    """Return the Model as it is created; the members that have a default are absent."""
    return received(
        copy.deepcopy(_written()), uid="0d3f8a52-6b1e-4f0c-9c57-7f2a4be1d3a9", owner="argocd-controller"
    )


@functools.cache
def _written() -> Json:
    manifest: Json = yaml.safe_load(_MODEL.read_text(encoding="utf-8"))
    return manifest
