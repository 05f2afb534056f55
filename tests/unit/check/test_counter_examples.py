"""The invalid samples, each with the messages that kubectl prints for it."""

from __future__ import annotations

from pathlib import Path

import pytest

from controller.commands.check.manifests import check_source
from controller.commands.check.result import Verdict
from controller.commands.check.sources import read_sources
from controller.commands.check.text import lines_of

SAMPLES = Path(__file__).resolve().parents[3] / "manifests" / "samples"
MESSAGES = sorted(SAMPLES.rglob("refused/*.txt"))


@pytest.mark.parametrize("message", MESSAGES, ids=lambda path: str(path.relative_to(SAMPLES)))
def test_check_prints_what_kubectl_prints(message: Path) -> None:
    """All lines are the same, except for warnings."""
    sources = read_sources([str(message.with_suffix(".yaml"))])
    results = (item for source in sources for item in check_source(source))
    said = [line.text for item in results for line in lines_of(item, set())]

    told = [line.rstrip() for line in message.read_text(encoding="utf-8").splitlines()]
    assert [line for line in said if not line.startswith("Warning:")] == told


def test_every_sample_is_valid() -> None:
    """Samples that are meant to be rejected are excluded, and none is unreadable."""
    sources = [source for source in read_sources([str(SAMPLES)]) if "refused" not in Path(source.name).parts]
    results = [result for source in sources for result in check_source(source)]

    assert {result.verdict for result in results} == {Verdict.VALID, Verdict.SKIPPED}
