"""`stowplan plan` as a person and a pipeline meet it: files in, a plan and an exit code out."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import yaml
from support.manifests import PERF_PARMS, deployment, legacy_variant, listed, profiled_variant, variant

from apiserver import cli
from controller.planning.inputs import PlanningInputs, to_json
from hack.fleets.worlds import world as fleet_world

Plan = Callable[..., tuple[int, str, list[str]]]
World = Callable[..., str]
Granted = Callable[[str], dict[str, int]]

WRONG_ARGUMENTS = {
    "without a file": ([], "the following arguments are required: -f"),
    "a demand without a number": (
        ["--demand", "chat"],
        "'chat': must be NAME=RATE in requests per second, such as meta/llama-3.1-8b=41 or ...=41@1155/211",
    ),
    "a demand with a unit": (["--demand", "chat=5k"], "'chat=5k': must be NAME=RATE"),
    "a demand in powers of ten": (["--demand", "chat=1e9"], "; numbers have at most 9 digits and 6 decimals"),
    "a demand of less than nothing": (["--demand", "chat=-5"], "'chat=-5': must be NAME=RATE"),
    "a demand without end": (["--demand", "chat=inf"], "'chat=inf': must be NAME=RATE"),
    "a demand of nothing in particular": (["--demand", "=5"], "'=5': must be NAME=RATE"),
    "requests without an answer's length": (["--demand", "chat=5@100"], "'chat=5@100': must be NAME=RATE"),
    "requests of half a pair": (["--demand", "chat=5@100/"], "'chat=5@100/': must be NAME=RATE"),
    "a capacity without a number": (["--capacity", "chat"], "'chat': must be NAME=RATE"),
    "a capacity for lengths": (
        ["--capacity", "chat=5@100/20"],
        "'chat=5@100/20': a capacity applies to the lengths of the model's own requests: omit @PROMPT/ANSWER",
    ),
    "nodes without a size": (["--add-node", "H100"], "'H100': must be TYPExACCELERATORS[:COUNT]"),
    "nodes without accelerators": (["--add-node", "H100x0"], "'H100x0': must be TYPExACCELERATORS[:COUNT]"),
    "no node at all": (["--add-node", "H100x8:0"], "'H100x8:0': must be TYPExACCELERATORS[:COUNT]"),
    "too many nodes": (["--add-node", "H100x8:100000"], "; numbers are from 1 to 9999"),
    "a budget in powers of ten": (
        ["--budget", "1e3"],
        "must be a cost per hour, such as 400 or 99.50, with at",
    ),
    "two budgets": (["--budget", "1", "--budget", "2"], "argument --budget: must be given once only"),
    "a saved decision on standard output": (["--save", "-"], "argument --save: must be the name of a file"),
    "a namespace that is none": (["-n", "Bad NS"], 'argument -n/--namespace: Invalid value: "Bad NS"'),
    "a negative budget": (["--budget=-1"], "'-1': must be a cost per hour"),
    "an unknown way to go short": (["--unmet", "luck"], "choose from"),
}


@pytest.mark.parametrize(("arguments", "told"), WRONG_ARGUMENTS.values(), ids=WRONG_ARGUMENTS.keys())
def test_wrong_arguments_are_named(
    arguments: list[str], told: str, capsys: pytest.CaptureFixture[str]
) -> None:
    """The exit code is 2, and the sentence says what would do."""
    files = [] if "required" in told else ["-f", "x.yaml"]
    with pytest.raises(SystemExit) as ended:
        cli.main(["plan", *files, *arguments])

    assert ended.value.code == 2
    assert told in capsys.readouterr().err


def test_a_list_a_directory_and_standard_input_are_the_same(
    plan: Plan, world: World, parts: Callable[..., list[dict[str, Any]]], granted: Granted
) -> None:
    """So are JSON and YAML, one file and many."""
    texts = {f"in/{number}.yaml": yaml.safe_dump(part) for number, part in enumerate(parts())}

    from_directory = plan("-f", "in", "-o", "json", files=texts)
    from_input = plan("-f", "-", "-o", "json", given=world())

    assert from_directory == from_input
    assert granted(from_input[1]) == {"chat": 1, "code": 1}
    assert from_input[0] == 0


SHAPES = {
    "v1alpha2": variant("llama", accelerator="A100"),
    "v1alpha1, the current shape": variant(
        "llama", version="v1alpha1", labels={"inference.optimization/acceleratorName": "A100"}
    ),
    "v1alpha1, the legacy shape": legacy_variant("llama"),
    "v1alpha1, the modelProfile shape": profiled_variant("llama"),
}


@pytest.mark.parametrize("shape", SHAPES.values(), ids=SHAPES.keys())
def test_every_shape_of_a_variant_is_read(plan: Plan, shape: dict[str, Any]) -> None:
    """Through the conversion of the webhook, in a list of its kind, too."""
    head = {"apiVersion": shape["apiVersion"], "kind": "VariantAutoscalingList", "items": [shape]}
    target = deployment("llama", product="NVIDIA-A100-SXM4-80GB", accelerators=1)

    code, out, err = plan("-f", "a.yaml", "-f", "b.json", "-o", "json", "--demand", "meta/llama-3.1-8b=0",
                          files={"a.yaml": yaml.safe_dump(head), "b.json": json.dumps(target)})  # fmt: skip

    (decision,) = json.loads(out)["plan"]["decisions"]
    assert (decision["name"], decision["accelerator"]) == ("llama", "A100")
    assert (code, err) == (1, [])


def test_a_saved_decision_gives_the_same_plan(plan: Plan, world: World) -> None:
    """With everything that was asked for, and the same bytes when it is saved again."""
    asked = (
        "--demand",
        "chat=90",
        "--budget",
        "99.5",
        "--unmet",
        "model",
        "--drain",
        "node-1",
        "--scale-to-zero",
    )
    first = plan("-f", "-", *asked, "--save", "a.json", "-o", "json", given=world())
    again = plan("-f", "a.json", "--save", "b.json", "-o", "json")

    assert again == first
    assert Path("b.json").read_bytes() == Path("a.json").read_bytes()
    assert json.loads(Path("a.json").read_bytes())["settings"]["unmet_unit"] == "model"


def test_how_good_a_plan_is_is_told_level_by_level(plan: Plan) -> None:
    """Each with its bound, in the document and in the text."""
    fleet = PlanningInputs(snapshot=fleet_world("plan-plenty", 60, seed=1))
    Path("fleet.json").write_bytes(to_json(fleet))
    _, text, _ = plan("-f", "fleet.json")
    _, document, _ = plan("-f", "fleet.json", "-o", "json")

    solver = json.loads(document)["plan"]["solver"]
    assert all(level["bound"] <= level["value"] for level in solver["levels"])
    assert ("no plan is better" in text) == (not solver["unproven"])
    told = [level["level"] for level in solver["levels"] if level["value"]]
    assert told == [level for level in told if f"  {level}: " in text]


def test_demand_comes_from_the_argument_before_the_status(plan: Plan, world: World, granted: Granted) -> None:
    """The argument may name the namespace or not, and may have a fraction."""
    exported = plan("-f", "-", "-o", "json", given=world(demand=25))
    stated = plan(
        "-f",
        "-",
        "-o",
        "json",
        "--demand",
        "chat=33.5",
        "--demand",
        "default/code=0",
        given=world(demand=25),
    )

    assert granted(exported[1]) == {"chat": 3, "code": 3}
    assert granted(stated[1]) == {"chat": 4, "code": 1}


ODD_STATUSES: dict[str, tuple[dict[str, Any], float | None]] = {
    "a start of thirty years": ({"startSeconds": 10**9}, 8.0),
    "more than anybody has": ({"upperRequestsPerSecond": "1000000000"}, 8.0),
    "more than anybody can have": ({"requestsPerSecond": "1" + "0" * 30}, None),
    "an upper bound that nobody can have": ({"upperRequestsPerSecond": "1" + "0" * 30}, None),
    "an upper bound below the rate": ({"upperRequestsPerSecond": "1"}, 8.0),
    "endless requests": ({"avgInputTokens": "9" * 30, "avgOutputTokens": "9" * 30}, 8.0),
}


@pytest.mark.parametrize(("odd", "rate"), ODD_STATUSES.values(), ids=ODD_STATUSES.keys())
def test_no_number_of_a_status_ends_the_plan(
    plan: Plan, parts: Callable[..., list[dict[str, Any]]], odd: dict[str, Any], rate: float | None
) -> None:
    """A status can be written by hand: what nobody can mean is not known, and never zero."""
    made = parts()
    made[-1]["status"]["decision"]["demand"] |= odd

    code, out, err = plan("-f", "-", "-o", "json", given=listed(*made))

    decided = {item["name"]: item for item in json.loads(out)["plan"]["decisions"]}
    assert (code in {0, 1}, err) == (True, [])
    assert decided["code"]["load"]["requests_per_second"] == rate
    assert decided["chat"]["load"]["requests_per_second"] == 8.0


LIMITS = {
    "a latency": ("ITL 80 ms", ["ITL 80 ms"]),
    "a batch": ("a batch of 256", ["a batch of 256"]),
    "something that is none": ("whatever", []),
}


@pytest.mark.parametrize(("limit", "want"), LIMITS.values(), ids=LIMITS.keys())
def test_the_limit_that_a_status_names_is_kept(
    plan: Plan, parts: Callable[..., list[dict[str, Any]]], limit: object, want: list[str]
) -> None:
    """The plan says within what a replica serves what it serves, as the controller did."""
    made = parts()
    made[-1]["status"]["decision"]["capacityLimit"] = limit

    _, out, _ = plan("-f", "-", "-o", "json", given=listed(*made))

    decided = {item["name"]: item for item in json.loads(out)["plan"]["decisions"]}
    capacity = decided["code"]["capacity"]
    assert [item["text"] for item in capacity["limits"]] == want
    assert ("within" in decided["code"]["message"]) == bool(want)


def test_the_largest_load_that_can_be_said_is_planned(plan: Plan, world: World) -> None:
    """It is more than anybody can serve, and that is what the plan says."""
    code, out, err = plan("-f", "-", "--demand", "chat=999999999", given=world())

    assert (code, err) == (1, [])
    assert out.splitlines()[-1].startswith("1 model short: default/c")


def test_lengths_can_be_stated(plan: Plan, parts: Callable[..., list[dict[str, Any]]]) -> None:
    """By a declared profile a replica serves less of longer requests."""
    made = [item for item in parts() if item["metadata"]["name"] != "code"]
    parms = {
        "decodeParms": {"alpha": "20", "beta": "0.4"},
        "prefillParms": {"gamma": "5", "delta": "0.05"},
    }
    made[-1]["spec"]["variantProfile"] = {"perfParms": parms, "maxBatchSize": 64}

    served = []
    for lengths in ("", "@100/50", "@1000/500"):
        _, out, _ = plan("-f", "-", "-o", "json", "--demand", f"chat=5{lengths}", given=listed(*made))
        (decision,) = json.loads(out)["plan"]["decisions"]
        served.append(decision["capacity"] and decision["capacity"]["requests_per_second"])

    assert served[0] is None, "without lengths nobody knows"
    assert served[1] > 5 * served[2] > 0


def test_without_demand_what_runs_stands(plan: Plan, world: World, granted: Granted) -> None:
    """The warning says how to state it."""
    code, out, _ = plan("-f", "-", "-o", "json", given=world(demand=None))

    assert granted(out) == {"chat": 1, "code": 1}
    assert json.loads(out)["warnings"][0] == (
        "the load of default/chat is unknown, so no running replica stops: use --demand"
        " default/chat=REQUESTS_PER_SECOND"
    )
    assert json.loads(out)["conclusion"] == (
        "no model is known to be short; models of unknown demand: default/chat, default/code"
    )
    assert code == 0


def test_a_replica_without_a_place_is_a_shortage(plan: Plan, world: World) -> None:
    """Also where nothing is known of the demand: what runs stands, and there is no room for it."""
    code, out, _ = plan("-f", "-", given=world(demand=None, nodes=1, size=1))

    assert code == 1
    assert out.splitlines()[-1].startswith("1 model short: default/c")


def test_a_capacity_can_be_stated(plan: Plan, granted: Granted) -> None:
    """What no status says is asked for; once stated it counts."""
    given = listed(deployment("chat", product="NVIDIA-L4", accelerators=1), variant("chat", accelerator="L4"))
    asked = ("-f", "-", "-o", "json", "--demand", "meta/llama-3.1-8b=15", "--add-node", "L4x4")

    _, before, _ = plan(*asked, given=given)
    code, after, _ = plan(*asked, "--capacity", "chat=10", given=given)

    assert json.loads(before)["warnings"][-1] == (
        "the capacity of a replica of default/chat is unknown: use --capacity"
        " default/chat=REQUESTS_PER_SECOND"
    )
    assert (code, granted(after)) == (0, {"chat": 2})


CHANGES = {
    "a drained node is left": (["--drain", "node-1"], {"node-2": 2, "node-1": 0}),
    "new nodes are used": (
        ["--add-node", "L4x8:2", "--drain", "node-1", "--drain", "node-2"],
        {"new-l4-1": 2},
    ),
}


@pytest.mark.parametrize(("arguments", "expected"), CHANGES.values(), ids=CHANGES.keys())
def test_nodes_come_and_go(plan: Plan, world: World, arguments: list[str], expected: dict[str, int]) -> None:
    """A new one is labelled like the others of its type, so what selects those may use it."""
    code, out, _ = plan("-f", "-", "-o", "json", *arguments, given=world())

    held = {node["name"]: sum(v["pods"] for v in node["variants"]) for node in json.loads(out)["nodes"]}
    assert held == held | expected
    assert code == 0


def test_pods_that_run_on_a_drained_node_move(plan: Plan, parts: Callable[..., list[dict[str, Any]]]) -> None:
    """A pod of an export is where it is, until its node is drained."""
    owner = {"apiVersion": "apps/v1", "kind": "ReplicaSet", "name": "chat-5d", "controller": True}
    metadata = {"name": "chat-5d-1", "labels": {"pod-template-hash": "5d"}, "ownerReferences": [owner]}
    pod = {"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": {"nodeName": "node-2"}}
    given = listed(*parts(), pod)

    places = []
    for arguments in ([], ["--drain", "node-2"]):
        _, out, _ = plan("-f", "-", "-o", "json", *arguments, given=given)
        nodes = json.loads(out)["nodes"]
        places.append([
            (node["name"], variant["new_pods"])
            for node in nodes for variant in node["variants"] if variant["name"] == "chat"
        ])  # fmt: skip

    assert places == [[("node-2", 0)], [("node-1", 1)]]


def test_a_budget_holds(plan: Plan, world: World) -> None:
    """Who goes short of money is told so."""
    code, out, _ = plan("-f", "-", "-o", "json", "--demand", "chat=60", "--budget", "120", given=world())

    document = json.loads(out)
    assert float(document["plan"]["cost"]) <= 120
    assert code == 1
    assert "Budget" in {decision["bound_by"] for decision in document["plan"]["decisions"]}


def test_scale_to_zero_lets_idle_models_go(plan: Plan, world: World, granted: Granted) -> None:
    """Without it one replica keeps a model warm."""
    warm = plan("-f", "-", "-o", "json", given=world(demand=0))
    cold = plan("-f", "-", "-o", "json", "--scale-to-zero", given=world(demand=0))

    assert granted(warm[1]) == {"chat": 1, "code": 1}
    assert granted(cold[1]) == {"chat": 0, "code": 0}


def test_the_exit_code_tells_a_shortage(plan: Plan, world: World) -> None:
    """And the last line says who goes short."""
    code, out, _ = plan("-f", "-", "--demand", "chat=70", given=world())

    assert code == 1
    assert out.splitlines()[-1].startswith("1 model short: default/ch")


def test_yaml_says_what_json_says(plan: Plan, world: World) -> None:
    """Programs choose."""
    _, as_yaml, _ = plan("-f", "-", "-o", "yaml", given=world())
    _, as_json, _ = plan("-f", "-", "-o", "json", given=world())

    assert yaml.safe_load(as_yaml) == json.loads(as_json)
    assert set(json.loads(as_json)) == {"is_enough", "conclusion", "warnings", "plan", "nodes"}


USELESS = {
    "of a type that nobody uses": (
        "H100x8",
        "--add-node H100x8: no variant can use such a node; the variants use L4",
    ),
    "too small for every pod": ("L4x1", "--add-node L4x1: no pod fits on such a node, the smallest takes 2"),
}


@pytest.mark.parametrize(("shape", "told"), USELESS.values(), ids=USELESS.keys())
def test_nodes_that_help_nobody_are_warned_of(
    plan: Plan, parts: Callable[..., list[dict[str, Any]]], shape: str, told: str
) -> None:
    """They are planned with all the same; nodes that would do are no matter of a warning."""
    made = parts()
    for item in (item for item in made if item["kind"] == "Deployment"):
        (container,) = item["spec"]["template"]["spec"]["containers"]
        container["resources"]["limits"]["nvidia.com/gpu"] = 2
    files = {"a.yaml": listed(*made)}

    _, out, _ = plan("-f", "a.yaml", "--add-node", shape, "-o", "json", files=files)
    _, useful, _ = plan("-f", "a.yaml", "--add-node", "L4x2", "-o", "json")

    assert json.loads(out)["warnings"] == [told]
    assert json.loads(useful)["warnings"] == []


def test_a_saved_decision_without_variants_is_no_plan(plan: Plan) -> None:
    """As among manifests: nobody is served, so nobody is told to be."""
    code, out, err = plan("-f", "a.json", files={"a.json": '{"snapshot": {"nodes": [], "variants": []}}'})

    assert (code, out) == (2, "")
    assert "nothing to plan: the input contains no VariantAutoscaling" in err[0]


def test_a_stated_capacity_of_nothing_stands(plan: Plan, parts: Callable[..., list[dict[str, Any]]]) -> None:
    """Whatever a profile or the model's other variants would make of it; in a saved decision as well."""
    made = parts()
    for item in (item for item in made if item["kind"] == "VariantAutoscaling"):
        item["spec"] |= {"modelID": "m", "variantProfile": {"perfParms": PERF_PARMS, "maxBatchSize": 4}}
        del item["status"]["decision"]["capacityPerReplica"]
    told = ["--demand", "m=2@100/20", "--capacity", "chat=0", "-o", "json"]

    _, out, _ = plan("-f", "a.yaml", *told, "--save", "s.json", files={"a.yaml": listed(*made)})
    _, again, _ = plan("-f", "s.json", "-o", "json")

    for text in (out, again):
        chat, code = json.loads(text)["plan"]["decisions"]
        assert (chat["capacity"]["requests_per_second"], chat["capacity"]["source"]) == (0, "Stated")
        assert code["capacity"]["source"] == "Profile"
