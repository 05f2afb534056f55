"""Field paths and JSON names."""

import pytest

from apiserver.schema.paths import FieldPath, camel_case


@pytest.mark.parametrize(
    ("name", "want"),
    [
        pytest.param("model_id", "modelID", id="id at the end is upper-cased"),
        pytest.param("id_suffix", "idSuffix", id="id at the start is lower-cased"),
        pytest.param("scale_target_ref", "scaleTargetRef", id="words begin upper-case"),
        pytest.param("global_", "global", id="a keyword loses its underscore"),
        pytest.param("model_uri", "modelURI", id="uri is upper-cased"),
    ],
)
def test_json_names_are_in_camel_case(name: str, want: str) -> None:
    """The names of all fields follow this rule."""
    assert camel_case(name) == want


def test_a_path_prints_as_kubernetes_prints_it() -> None:
    """Members follow dots; items and keys are in brackets."""
    path = FieldPath().child("spec", "rules").index(2).child("labels").key("app")

    assert str(path) == "spec.rules[2].labels[app]"
