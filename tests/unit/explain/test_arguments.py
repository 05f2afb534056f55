"""Arguments of `stowplan explain`, and its behaviour without a cluster."""

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
def test_the_default_namespace_is_that_of_the_kubeconfig_context(
    tmp_path: Path, context: str | None, namespace: str
) -> None:
    """This is the behaviour of kubectl."""
    path = tmp_path / "config"
    path.write_text(KUBECONFIG, encoding="utf-8")

    assert current_namespace(path, context, {}) == namespace
    assert current_namespace(None, context, {"KUBECONFIG": f"{tmp_path / 'none'}:{path}"}) == namespace


@pytest.mark.parametrize("text", ["", "7", ": : :", "contexts: 7", "contexts: [7]\ncurrent-context: x"])
def test_the_namespace_is_default_if_the_kubeconfig_is_invalid(tmp_path: Path, text: str) -> None:
    """The error is reported when connecting."""
    path = tmp_path / "config"
    path.write_text(text, encoding="utf-8")

    assert current_namespace(path, None, {}) == "default"


@pytest.mark.parametrize("words", [["deploy/x"], ["va"], ["va/"], ["va/x/y"], ["x", "y"], ["x", "-A"]])
def test_an_argument_that_is_not_a_variant_is_rejected(
    words: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    """The message shows the expected form."""
    with pytest.raises(SystemExit) as ended:
        cli.main(["explain", *words])

    assert ended.value.code == 2
    assert "va/NAME" in capsys.readouterr().err


def test_without_a_name_the_cluster_is_asked(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """It lists what is not well."""
    assert cli.main(["explain", "--kubeconfig", str(tmp_path / "none")]) == 2
    assert "there is no kubeconfig at" in capsys.readouterr().err


@pytest.mark.parametrize(
    "words",
    [
        *(["va/x"], ["va", "x"], ["VariantAutoscaling/x"], ["x"]),
        *(["aspb/x"], ["AutoscalingPolicyBinding", "x"]),
        *(["hpa/x"], ["so/x"], ["horizontalpodautoscalers.autoscaling", "x"], ["ScaledObject/x"]),
    ],
)
def test_variants_and_bindings_can_be_named_in_any_form_that_kubectl_accepts(
    words: list[str], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Without a kubeconfig, the message names the path that was searched."""
    missing = tmp_path / "none"

    assert cli.main(["explain", *words, "--kubeconfig", str(missing)]) == 2
    assert f"there is no kubeconfig at {missing}" in capsys.readouterr().err
