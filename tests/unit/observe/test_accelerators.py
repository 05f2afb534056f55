"""Accelerators by their many names, and how many a pod asks for."""

from __future__ import annotations

import pytest

from apiserver.schema.json import Json
from controller.observe.accelerators import accelerators_in, accelerators_of, normalised, product_of


@pytest.mark.parametrize(
    ("product", "want"),
    [
        ("NVIDIA-A100-PCIE-80GB", "A100"),
        ("NVIDIA-H100-80GB-HBM3", "H100"),
        ("NVIDIA-H100-SXM5-80GB", "H100"),
        ("NVIDIA-L40S-48GB", "L40S"),
        ("NVIDIA-L40S", "L40S"),
        ("AMD-MI300X-192G", "MI300X"),
        ("AMD_Instinct_MI300X_OAM", "MI300X"),
        ("Intel-Gaudi-2-96GB", "GAUDI-2"),
        ("nvidia-h100-80gb", "H100"),
        ("Tesla-T4", "T4"),
        ("A100", "A100"),
        ("nvidia", "NVIDIA"),
        ("", ""),
    ],
)
def test_differently_spelled_products_meet(product: str, want: str) -> None:
    """Vendor, memory and form factor go."""
    assert normalised(product) == want


@pytest.mark.parametrize(
    ("quantity", "want"),
    [
        ("8", 8),
        (8, 8),
        ("1k", 1000),
        ("1Ki", 1024),
        ("1e3", 1000),
        ("2000m", 2),
        ("1M", 1_000_000),
        ("junk", 0),
    ],
)
def test_quantities_are_read_in_every_spelling(quantity: str | int, want: int) -> None:
    """One oddly spelled pod must not stop the planning of all."""
    assert accelerators_in({"nvidia.com/gpu": quantity, "cpu": "7"}) == want


def test_the_most_telling_label_names_the_type() -> None:
    """Feature discovery goes before what a cloud writes."""
    labels = {"cloud.google.com/gke-accelerator": "nvidia-l4", "nvidia.com/gpu.product": "NVIDIA-L40S"}

    assert product_of(labels) == "L40S"
    assert product_of({"kubernetes.io/arch": "amd64"}) == ""


def container(count: int | str, **members: str) -> Json:
    """Return a container that is limited to some accelerators."""
    return {"resources": {"limits": {"nvidia.com/gpu": count, "cpu": "4"}}, **members}


@pytest.mark.parametrize(
    ("spec", "want"),
    [
        pytest.param({"containers": [container(2), container("3")]}, 5, id="containers add up"),
        pytest.param(
            {"containers": [container(2)], "initContainers": [container(8)]},
            8,
            id="a hungrier init container",
        ),
        pytest.param(
            {"containers": [container(2)], "initContainers": [container(1, restartPolicy="Always")]},
            3,
            id="a sidecar counts with the others",
        ),
        pytest.param({"containers": [{}]}, 0, id="no accelerator at all"),
    ],
)
def test_a_pod_asks_for_what_its_containers_ask(spec: Json, want: int) -> None:
    """Requests of a pod follow the scheduler's arithmetic."""
    assert accelerators_of(spec) == want
