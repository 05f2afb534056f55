"""The shipped valid and invalid samples, and kubectl's wording of a rejection."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any, Final

SAMPLES: Final = Path(__file__).resolve().parents[2] / "manifests" / "samples"
_FILES: Final = sorted(path for path in SAMPLES.rglob("*.yaml") if "simulate" not in path.parts)
"""Files under `simulate` are scenarios and no manifests."""

VALID: Final = [path for path in _FILES if "refused" not in path.parts]
"""Files that a cluster with Stowplan accepts."""

REFUSED: Final = [path for path in _FILES if "refused" in path.parts]
"""Files with one object each that it rejects, with kubectl's output in a `.txt` file next to each."""


def refusal_text(manifest: dict[str, Any], errors: Sequence[str]) -> str:
    """Return kubectl's output for a 422 with these causes."""
    head = f'The {manifest["kind"]} "{manifest["metadata"]["name"]}" is invalid: '
    if len(errors) == 1:
        return f"{head}{errors[0]}\n"
    return "\n".join([head, *(f"* {error}" for error in errors)]) + "\n"
