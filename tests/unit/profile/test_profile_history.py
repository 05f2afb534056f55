"""`stowplan profile --prometheus` with a real Prometheus that scraped two engines in the last hour."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
import yaml
from support.engine_history import PROFILE, Past, pages, prometheus_with

from apiserver import cli


@pytest.fixture(scope="module")
def url(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """Yield the URL of a Prometheus that has the past of two pods, one of which restarted."""
    past = Past()
    past.add("llama-7d9f8c6b5-abcde", pages(121, restart_at=60))
    past.add("llama-7d9f8c6b5-fghij", pages(60, seed=2), until_seconds=300)
    with prometheus_with(past, tmp_path_factory.mktemp("prometheus")) as running:
        yield running


def test_step_times_are_those_of_the_engines(url: str, capsys: pytest.CaptureFixture[str]) -> None:
    """Although one restarted, and the other was there for half of the time."""
    code = cli.main(["profile", "--prometheus", url, "-n", "chat", "--pods", "llama-.*", "--last", "1h"])
    out = capsys.readouterr().out

    assert code == 0
    parms = yaml.safe_load(out)["spec"]["variantProfile"]["perfParms"]
    assert float(parms["decodeParms"]["alpha"]) == pytest.approx(PROFILE.alpha_ms, rel=0.05)
    assert float(parms["decodeParms"]["beta"]) == pytest.approx(PROFILE.beta_ms, rel=0.1)
    assert float(parms["prefillParms"]["delta"]) == pytest.approx(PROFILE.delta_ms, rel=0.1)
    assert "2 replicas" in out


WRONG: dict[str, tuple[list[str], int, str]] = {
    "another namespace": (["-n", "other"], 1, "has no series of vLLM or SGLang of pods of namespace other"),
    "other pods": (["-n", "chat", "--pods", "nobody"], 1, "that match nobody"),
    "no expression": (["-n", "chat", "--pods", "("], 2, "error parsing regexp"),
    "an expression with quotes": (["-n", "chat", "--pods", '"} or vector[1]'], 1, "has no series"),
}


@pytest.mark.parametrize(("arguments", "code", "text"), WRONG.values(), ids=WRONG)
def test_what_prometheus_does_not_have_is_said(
    url: str, capsys: pytest.CaptureFixture[str], arguments: list[str], code: int, text: str
) -> None:
    """In one sentence."""
    assert cli.main(["profile", "--prometheus", url, *arguments]) == code
    captured = capsys.readouterr()
    assert text in captured.out + captured.err


def test_another_server_is_no_prometheus(url: str, capsys: pytest.CaptureFixture[str]) -> None:
    """A path that does not exist."""
    assert cli.main(["profile", "--prometheus", f"{url}/nowhere", "-n", "chat"]) == 2
    assert capsys.readouterr().err == "error: Prometheus: HTTP 404: 404 page not found\n"
