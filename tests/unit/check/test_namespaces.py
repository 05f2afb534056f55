"""The namespace of checked objects: their own, that of the command line, or an unknown one."""

from __future__ import annotations

import io
import json
import sys
from typing import Any

import pytest

from apiserver import cli
from controller.commands.check.manifests import check_source
from controller.commands.check.result import CheckResult
from controller.commands.check.sources import Source

FIELD = "spec.scalingConfiguration.target.targetRef.namespace"


def binding(*, own: str | None, target: str | None) -> dict[str, Any]:
    """Return a binding and its target, each in a namespace or without one."""
    reference = {"name": "llama"} | ({"namespace": target} if target else {})
    scaling = {"target": {"targetRef": reference}, "minReplicas": 1, "maxReplicas": 4}
    return {
        "apiVersion": "registry.volcano.sh/v1alpha1",
        "kind": "AutoscalingPolicyBinding",
        "metadata": {"name": "x"} | ({} if own is None else {"namespace": own}),
        "spec": {"policyRef": {"name": "p"}, "scalingConfiguration": scaling},
    }


def checked(manifest: dict[str, Any], namespace: str = "") -> CheckResult:
    """Return the result of one object."""
    (result,) = check_source(Source(name="a.json", data=json.dumps(manifest).encode()), namespace)
    return result


UNLESS = f"{FIELD}: is refused unless the binding is in that namespace"
WARNED = {
    "the binding has no namespace": (None, "kube-system", "", [UNLESS]),
    "the binding has an empty namespace": ("", "kube-system", "", [UNLESS]),
    "the target has no namespace": (None, None, "", []),
    "the binding has the same namespace": ("kube-system", "kube-system", "", []),
    "the command line has the same namespace": (None, "kube-system", "kube-system", []),
}


@pytest.mark.parametrize(("own", "target", "namespace", "want"), WARNED.values(), ids=WARNED.keys())
def test_a_target_with_a_namespace_causes_a_warning_if_that_of_the_binding_is_unknown(
    own: str | None, target: str | None, namespace: str, want: list[str]
) -> None:
    """If it is known, there is no warning."""
    result = checked(binding(own=own, target=target), namespace)

    assert result.errors == ()
    assert [text for text in result.warnings if text.startswith(FIELD)] == want


@pytest.mark.parametrize(("own", "namespace"), [("a", ""), ("", "a"), (None, "a"), ("a", "a")])
def test_a_target_in_another_namespace_is_rejected(own: str | None, namespace: str) -> None:
    """The namespace of the binding may be its own or that of the command line."""
    result = checked(binding(own=own, target="kube-system"), namespace)

    assert [(found.field, found.reason) for found in result.errors] == [(FIELD, "FieldValueInvalid")]


def test_an_object_without_a_namespace_gets_that_of_the_command_line() -> None:
    """This is where kubectl would create it."""
    result = checked(binding(own=None, target=None), "prod")

    assert result.namespace == "prod"
    assert result.value is not None
    assert result.value["metadata"] == {"name": "x", "namespace": "prod"}


def test_an_object_of_another_namespace_is_rejected_with_all_its_errors() -> None:
    """The first message is that of kubectl, which would stop there."""
    result = checked(binding(own="dev", target="kube-system"), "prod")

    mismatch, target = result.errors
    assert (mismatch.field, mismatch.reason) == ("metadata.namespace", "NamespaceMismatch")
    assert mismatch.message == (
        'the namespace from the provided object "dev" does not match the namespace "prod". You must pass'
        " '--namespace=dev' to perform this operation."
    )
    assert target.field == FIELD
    assert result.namespace == "dev"


def test_malformed_metadata_is_rejected_with_a_namespace_on_the_command_line() -> None:
    """The namespace cannot be added to it."""
    manifest = binding(own=None, target=None) | {"metadata": "x"}

    assert [found.field for found in checked(manifest, "prod").errors] == ["metadata"]


def test_the_verb_has_an_option_for_the_namespace(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Messages still have the lines of the file."""
    text = json.dumps(binding(own=None, target="kube-system"), indent=1)
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(text.encode())))

    assert cli.main(["check", "-n", "prod", "-"]) == 1
    assert capsys.readouterr().out == (
        f'<stdin>:15: The AutoscalingPolicyBinding "x" is invalid: {FIELD}: Invalid value: "kube-system":'
        " must be the namespace of the binding itself, or left out\n"
    )


def test_an_invalid_namespace_is_wrong_usage(capsys: pytest.CaptureFixture[str]) -> None:
    """It is reported before any file is read."""
    with pytest.raises(SystemExit) as stopped:
        cli.main(["check", "-n", "Prod", "-"])

    assert stopped.value.code == 2
    assert 'Invalid value: "Prod"' in capsys.readouterr().err
