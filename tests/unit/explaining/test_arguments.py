"""Which variant `stowplan explain` is asked about, and what it says without a cluster."""

from __future__ import annotations

from pathlib import Path

import pytest

from apiserver import cli
from apiserver.cluster.namespaces import current_namespace

KUBECONFIG = """\
current-context: here
contexts:
- name: here
  context: {cluster: c, user: u, namespace: chat}
- name: bare
  context: {cluster: c, user: u}
"""


@pytest.mark.parametrize(
    ("context", "namespace"), [(None, "chat"), ("here", "chat"), ("bare", "default"), ("unknown", "default")]
)
def test_the_namespace_is_the_context_s(tmp_path: Path, context: str | None, namespace: str) -> None:
    """As kubectl has it."""
    path = tmp_path / "config"
    path.write_text(KUBECONFIG, encoding="utf-8")

    assert current_namespace(path, context, {}) == namespace
    assert current_namespace(None, context, {"KUBECONFIG": f"{tmp_path / 'none'}:{path}"}) == namespace


@pytest.mark.parametrize("text", ["", "7", ": : :", "contexts: 7", "contexts: [7]\ncurrent-context: x"])
def test_a_kubeconfig_that_says_nothing_names_no_namespace(tmp_path: Path, text: str) -> None:
    """Connecting tells what is wrong with it."""
    path = tmp_path / "config"
    path.write_text(text, encoding="utf-8")

    assert current_namespace(path, None, {}) == "default"


@pytest.mark.parametrize("words", [["deploy/x"], ["va"], ["va/"], ["va/x/y"], ["x", "y"], []])
def test_what_is_no_variant_is_refused(words: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    """The message shows how to say it."""
    with pytest.raises(SystemExit) as ended:
        cli.main(["explain", *words])

    assert ended.value.code == 2
    assert "va/NAME" in capsys.readouterr().err


@pytest.mark.parametrize(
    "words",
    [["va/x"], ["va", "x"], ["VariantAutoscaling/x"], ["x"], ["aspb/x"], ["AutoscalingPolicyBinding", "x"]],
)
def test_a_variant_is_asked_for_in_any_way_that_kubectl_takes(
    words: list[str], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Without a kubeconfig the answer says where it was looked for."""
    missing = tmp_path / "none"

    assert cli.main(["explain", *words, "--kubeconfig", str(missing)]) == 2
    assert f"there is no kubeconfig at {missing}" in capsys.readouterr().err
