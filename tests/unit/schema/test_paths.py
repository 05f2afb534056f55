"""Field paths and JSON names."""

import pytest

from apiserver.schema.paths import FieldPath, camel_case


@pytest.mark.parametrize(
    ("name", "want"),
    [
        pytest.param("model_id", "modelID", id="id at the end is upper-cased"),
        pytest.param("id_suffix", "idSuffix", id="id at the start is not"),
        pytest.param("scale_target_ref", "scaleTargetRef", id="words begin upper-case"),
        pytest.param("global_", "global", id="a keyword loses its underscore"),
        pytest.param("model_uri", "modelURI", id="uri is upper-cased"),
    ],
)
def test_json_names_follow_one_rule(name: str, want: str) -> None:
    """The camel-case rule names every field."""
    assert camel_case(name) == want


def test_a_path_prints_as_kubernetes_prints_it() -> None:
    """Members by dots, items and keys in brackets."""
    path = FieldPath().child("spec", "rules").index(2).child("labels").key("app")

    assert str(path) == "spec.rules[2].labels[app]"
