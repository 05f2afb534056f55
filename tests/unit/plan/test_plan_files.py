"""Files of `stowplan plan`: samples, documented output, prices, names, skipped objects, and output files."""

from __future__ import annotations

import json
import re
import shlex
from pathlib import Path

import pytest
from support.manifests import autoscaler, deployment, listed, node, variant
from support.plan_verb import Parts, Plan, World
from support.samples import SAMPLES

from apiserver import cli


def test_omitted_objects_are_reported(plan: Plan, parts: Parts) -> None:
    """Other kinds are listed on standard error, variants that cannot be planned in a warning."""
    serving = {"apiVersion": "workload.serving.volcano.sh/v1alpha1", "kind": "ModelServing", "name": "set"}
    other = variant("set", scaleTargetRef=serving)
    service = {"apiVersion": "v1", "kind": "Service", "metadata": {"name": "s"}}

    code, out, err = plan("-f", "-", given=listed(*parts(), other, service, autoscaler("chat")))

    assert err == ["skipped: 1 Service (v1)"]
    left_out = "warning: VariantAutoscaling default/set is omitted: ModelServing 'set' cannot be planned:"
    assert f"{left_out} its scale was not read: see docs/targets.md" in " ".join(out.split())
    assert code == 1


UNWRITABLE = {
    "a missing directory": (
        ["--save", "plan", "--html", "missing/p.html"],
        ["missing/p.html: error: cannot be written: its directory does not exist"],
    ),
    "an existing directory": (
        ["--html", "plan", "--save", "."],
        [".: error: cannot be written: Is a directory"],
    ),
    "a file name that is too long": (
        ["--html", "p" * 300],
        [f"{'p' * 300}: error: cannot be written: File name too long"],
    ),
    "the same file twice": (
        ["--html", "plan", "--save", "./plan"],
        ["plan: error: --save and --html must name different files"],
    ),
}


@pytest.mark.parametrize(("arguments", "told"), UNWRITABLE.values(), ids=UNWRITABLE.keys())
def test_output_files_that_cannot_be_written_are_rejected_before_planning(
    plan: Plan, world: World, arguments: list[str], told: list[str]
) -> None:
    """Nothing is planned, and the exit code is 2."""
    code, out, err = plan("-f", "-", *arguments, given=world())

    assert (code, out, err) == (2, "", told)
    assert not Path("plan").exists()


def test_the_plan_is_printed_even_if_the_disk_is_full(plan: Plan, world: World) -> None:
    """An error that cannot be detected in advance is reported after the plan, with exit code 2."""
    code, out, err = plan("-f", "-", "--save", "/dev/full", given=world())

    assert code == 2
    assert out.splitlines()[-1] == "the demand of every model is met"
    assert err == ["/dev/full: error: cannot be written: No space left on device"]


def test_the_samples_give_the_documented_conclusions(plan: Plan) -> None:
    """One command meets all demand, the other one leaves models of lower priority short."""
    fits, whole, _ = plan("-f", str(SAMPLES / "plan"))
    short, part, _ = plan("-f", str(SAMPLES / "plan"), "--demand", "meta/llama-3.1-70b=105")

    assert (fits, whole.splitlines()[-1]) == (0, "the demand of every model is met")
    assert (short, part.splitlines()[-1]) == (
        1,
        "2 models short: chat/meta/llama-3.1-70b, chat/qwen/qwen2.5-coder-32b",
    )


TOP = SAMPLES.parent.parent
DOCUMENT = TOP / "docs" / "planning.md"
SHOWN = re.findall(
    r"^```console\n\$ stowplan ([^|\n]*)[^\n]*\n(.*?)^```",
    DOCUMENT.read_text("utf-8"),
    re.MULTILINE | re.DOTALL,
)


@pytest.mark.parametrize(("command", "shown"), SHOWN, ids=[command for command, _ in SHOWN])
def test_a_command_prints_the_documented_output(
    command: str, shown: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """The terminal has 120 columns; if another command filters the output, the lines are contiguous."""
    monkeypatch.chdir(TOP)
    monkeypatch.setenv("COLUMNS", "120")

    cli.main(shlex.split(command))

    assert shown in capsys.readouterr().out


def test_the_document_shows_output() -> None:
    """Otherwise the tests above would check nothing."""
    assert SHOWN


PRODUCTS = {"H100": "NVIDIA-H100-80GB-HBM3", "A100": "NVIDIA-A100-SXM4-80GB"}
PRICES = {
    "apiVersion": "v1",
    "kind": "ConfigMap",
    "metadata": {"name": "accelerator-unit-costs", "namespace": "stowplan-system"},
    "data": {kind: json.dumps({"cost": cost}) for kind, cost in (("H100", "80.00"), ("A100", "40.00"))},
}


def fleet() -> str:
    """Return a model with a variant on each of two types, whose cost nobody wrote, as JSON."""
    made = [PRICES]
    for kind, product in PRODUCTS.items():
        name = f"m-{kind.lower()}"
        labels = {"inference.optimization/acceleratorName": kind}
        made += [
            node(name, product=product) | {"apiVersion": "v1", "kind": "Node"},
            deployment(name, product=product, accelerators=1),
            variant(name, modelID="org/model", variantCost=None, labels=labels),
        ]
    return listed(*made)


def test_the_default_cost_does_not_hide_the_price_list(plan: Plan) -> None:
    """By the list, five replicas of the cheaper type cost 200 per hour, and three of the other one 240."""
    options = ("--demand", "org/model=25", "--capacity", "m-h100=10", "--capacity", "m-a100=6")

    _, out, _ = plan("-f", "-", *options, given=fleet())
    _, document, _ = plan("-f", "-", *options, "-o", "json", given=fleet())

    assert "cost per hour: 200\n  of a replica by UnitCost (A, B)\n" in out
    decisions = json.loads(document)["plan"]["decisions"]
    assert {item["name"]: item["replicas"] for item in decisions} == {"m-a100": 5, "m-h100": 0}


def test_workloads_of_other_namespaces_are_named_regardless_of_the_configuration(plan: Plan) -> None:
    """Users who can read the files may see all names; statuses in a cluster hide them by default."""
    texts = {f"in/{path.name}": path.read_text("utf-8") for path in sorted((SAMPLES / "plan").iterdir())}
    for name, text in texts.items():
        documents = text.split("\n---\n")
        moved = (item.replace("namespace: chat", "namespace: code") for item in documents if "qwen" in item)
        texts[name] = "\n---\n".join([*moved, *(item for item in documents if "qwen" not in item)])
    told = ["-f", "in", "--config", "c.yaml", "--demand", "meta/llama-3.1-70b=105"]

    _, out, _ = plan(*told, files=texts | {"c.yaml": "planning: {}\n"})

    assert "held by priority 1 chat/llama-70b-h100" in " ".join(out.split())


def test_running_replicas_are_kept_if_their_capacity_is_unknown(plan: Plan, parts: Parts) -> None:
    """No pod is bound to a node in manifests, and what a replica serves is known from no other source."""
    made = parts(demand=None)
    for item in made:
        if item["kind"] == "Deployment":
            item["spec"]["replicas"] = 2
        item.pop("status", None) if item["kind"] == "VariantAutoscaling" else None

    code, out, _ = plan(
        "-f", "-", "-o", "json", "--demand", "chat=5", "--demand", "code=0", given=listed(*made)
    )

    chat, code_ = json.loads(out)["plan"]["decisions"]
    assert (chat["replicas"], chat["reason"], chat["bound_by"]) == (2, "Holding", "CapacityUnknown")
    assert (chat["unmet_per_mille"], code_["replicas"]) == (0, 1)
    assert json.loads(out)["conclusion"].endswith("models of unknown demand or capacity: default/chat")
    assert code == 0


def test_a_capacity_from_the_catalog_is_marked_as_an_estimate(plan: Plan, parts: Parts) -> None:
    """In a warning, in the message of the decision, and as its source in JSON."""
    made = [item for item in parts(demand=None) if item["metadata"]["name"] != "code"]
    for item in made:
        if item["kind"] == "VariantAutoscaling":
            item["spec"]["modelID"] = "meta-llama/Llama-3.2-3B-Instruct"
            item.pop("status", None)

    demand = "meta-llama/Llama-3.2-3B-Instruct=2@1000/200"
    code, out, _ = plan("-f", "-", "-o", "json", "--demand", demand, given=listed(*made))

    found = json.loads(out)
    (chat,) = found["plan"]["decisions"]
    assert chat["capacity"]["source"] == "Catalog"
    assert chat["message"].endswith(", by an estimate from the catalog")
    assert any(
        "is estimated for Llama-3.2-3B with 16-bit weights on L4, and can be off by a factor of two" in text
        for text in found["warnings"]
    )
    assert code == 0
