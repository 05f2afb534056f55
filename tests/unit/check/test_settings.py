"""`stowplan check` of the ConfigMaps of service classes and prices."""

from __future__ import annotations

import pytest
from support.check_verb import Check

SETTINGS = """\
apiVersion: v1
kind: ConfigMap
metadata: {name: service-classes-config, namespace: stowplan-system}
data:
  premium.yaml: |
    # served first
    priority: one
    data:
    - model: llama
      slo-ttft: 0
  broken.yaml: |
    name: Broken
    priority: [1
  short.yaml: "priority: 200"
---
apiVersion: v1
kind: ConfigMap
metadata: {name: accelerator-unit-costs}
data:
  A100: '{"device": "NVIDIA-A100", "cost": "40.00"}'
  H100: |
    {"device": "NVIDIA-H100",
     "cost": "a lot"}
"""
SAMPLE = """\
apiVersion: v1
kind: ConfigMap
metadata: {name: service-classes-config}
data:
  premium.yaml: |
    priority: 1
---
apiVersion: v1
kind: ConfigMap
metadata: {name: other}
data: {a: "priority: one"}
"""


def test_every_error_has_its_line_within_the_text(check: Check) -> None:
    """A text on one line has the line of its key."""
    code, out, _ = check("s.yaml", s_yaml=SETTINGS)

    assert (code, out) == (
        1,
        [
            's.yaml:1: The ConfigMap "service-classes-config" is invalid:',
            's.yaml:7: * data[premium.yaml].priority: Invalid value: "one": must be an integer',
            "s.yaml:10: * data[premium.yaml].data[0].slo-ttft: Invalid value: 0: must be greater than or"
            " equal to 1",
            "s.yaml:13: * data[broken.yaml]: Invalid value: is not YAML: line 3: expected ',' or ']', but got"
            " '<stream end>'",
            "s.yaml:14: * data[short.yaml].priority: Invalid value: 200: must be less than or equal to 100",
            's.yaml:23: The ConfigMap "accelerator-unit-costs" is invalid: data[H100].cost: Invalid value:'
            ' "a lot": must be a number from 0 to 1000000000, such as 40.00',
        ],
    )


def test_valid_settings_are_checked_and_other_config_maps_are_not(check: Check) -> None:
    """The names are those of the default configuration."""
    code, out, err = check("s.yaml", s_yaml=SAMPLE)

    assert (code, out) == (0, ["s.yaml:1: ConfigMap/service-classes-config valid"])
    assert err == ["skipped: 1 ConfigMap (v1)"]


def test_a_key_that_is_there_twice_is_refused(check: Check) -> None:
    """The last one would silently win."""
    code, out, _ = check("s.yaml", s_yaml=SAMPLE.replace("---", '  premium.yaml: "priority: 2"\n---', 1))

    assert code == 1
    assert out == [
        's.yaml:7: Error from server (BadRequest): ConfigMap in version "v1" cannot be handled as a'
        ' ConfigMap: strict decoding error: duplicate field "data.premium.yaml"'
    ]


def test_an_unknown_field_is_refused(check: Check) -> None:
    """Without `data`, it would have no effect."""
    code, out, _ = check("s.yaml", s_yaml=SAMPLE.replace("\ndata:", "\ndta:", 1))

    assert code == 1
    assert out == [
        's.yaml:4: Error from server (BadRequest): ConfigMap in version "v1" cannot be handled as a'
        ' ConfigMap: strict decoding error: unknown field "dta"'
    ]


NAMESPACES = {
    "the usual one, in the manifest": ("namespace: stowplan-system", "", False),
    "the usual one, by an option": ("", "stowplan-system", False),
    "an unknown one": ("", "", False),
    "another one, in the manifest": ("namespace: llm", "", True),
    "another one, by an option": ("", "llm", True),
}


@pytest.mark.parametrize(("in_manifest", "option", "is_warned"), NAMESPACES.values(), ids=NAMESPACES)
def test_settings_in_another_namespace_cause_a_warning(
    check: Check, in_manifest: str, option: str, is_warned: bool
) -> None:
    """An installation reads them in its own namespace only."""
    text = SAMPLE.replace(
        "{name: service-classes-config}", f"{{name: service-classes-config, {in_manifest}}}"
    )
    code, out, _ = check("s.yaml", *(["-n", option] if option else []), s_yaml=text)

    warning = "s.yaml:1: Warning: is read only if Stowplan is installed in namespace llm"
    assert (code, out[0] == warning) == (0, is_warned)


def test_an_object_that_a_file_contains_twice_causes_a_warning(check: Check) -> None:
    """`kubectl apply` reports the second one as configured, and the first one is lost."""
    code, out, _ = check("s.yaml", s_yaml=f"{SAMPLE}---\n{SAMPLE}")

    assert code == 0
    assert out == [
        "s.yaml:1: ConfigMap/service-classes-config valid",
        "s.yaml:13: Warning: ConfigMap/service-classes-config is also on line 1: kubectl applies both,"
        " and this one remains",
        "s.yaml:13: ConfigMap/service-classes-config valid",
    ]
