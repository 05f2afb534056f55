"""The command `stowplan plan`: arguments and files as input, a plan and an exit code as output."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
import yaml
from support.manifests import (
    PERF_PARMS,
    deployment,
    legacy_variant,
    listed,
    pod_of,
    profiled_variant,
    variant,
)
from support.plan_verb import Granted, Parts, Plan, World

from apiserver import cli
from controller.planning.inputs import PlanningInputs, to_json
from hack.fleets.worlds import world as fleet_world

WRONG_ARGUMENTS = {
    "no file": ([], "the following arguments are required: -f"),
    "a demand without a number": (
        ["--demand", "chat"],
        "'chat': must be NAME=RATE in requests per second, such as meta/llama-3.1-8b=41 or ...=41@1155/211",
    ),
    "a demand with a unit": (["--demand", "chat=5k"], "'chat=5k': must be NAME=RATE"),
    "a demand with an exponent": (["--demand", "chat=1e9"], "; numbers have at most 9 digits and 6 decimals"),
    "a negative demand": (["--demand", "chat=-5"], "'chat=-5': must be NAME=RATE"),
    "an infinite demand": (["--demand", "chat=inf"], "'chat=inf': must be NAME=RATE"),
    "a demand without a model": (["--demand", "=5"], "'=5': must be NAME=RATE"),
    "a prompt length alone": (["--demand", "chat=5@100"], "'chat=5@100': must be NAME=RATE"),
    "an empty answer length": (["--demand", "chat=5@100/"], "'chat=5@100/': must be NAME=RATE"),
    "a capacity without a number": (["--capacity", "chat"], "'chat': must be NAME=RATE"),
    "a capacity with request lengths": (
        ["--capacity", "chat=5@100/20"],
        "'chat=5@100/20': a capacity applies to the lengths of the model's own requests: omit @PROMPT/ANSWER",
    ),
    "nodes without a size": (["--add-node", "H100"], "'H100': must be TYPExACCELERATORS[:COUNT]"),
    "nodes without accelerators": (["--add-node", "H100x0"], "'H100x0': must be TYPExACCELERATORS[:COUNT]"),
    "a count of zero nodes": (["--add-node", "H100x8:0"], "'H100x8:0': must be TYPExACCELERATORS[:COUNT]"),
    "too many nodes": (["--add-node", "H100x8:100000"], "; numbers are from 1 to 9999"),
    "a budget with an exponent": (
        ["--budget", "1e3"],
        "must be a cost per hour, such as 400 or 99.50, with at",
    ),
    "two budgets": (["--budget", "1", "--budget", "2"], "argument --budget: must be given once only"),
    "a saved decision on standard output": (["--save", "-"], "argument --save: must be the name of a file"),
    "an invalid namespace": (["-n", "Bad NS"], 'argument -n/--namespace: Invalid value: "Bad NS"'),
    "a negative budget": (["--budget=-1"], "'-1': must be a cost per hour"),
}


@pytest.mark.parametrize(("arguments", "told"), WRONG_ARGUMENTS.values(), ids=WRONG_ARGUMENTS.keys())
def test_wrong_arguments_are_reported(
    arguments: list[str], told: str, capsys: pytest.CaptureFixture[str]
) -> None:
    """The exit code is 2, and the message states what is accepted."""
    files = [] if "required" in told else ["-f", "x.yaml"]
    with pytest.raises(SystemExit) as ended:
        cli.main(["plan", *files, *arguments])

    assert ended.value.code == 2
    assert told in capsys.readouterr().err


def test_a_list_on_standard_input_equals_a_directory_of_files(
    plan: Plan, world: World, parts: Parts, granted: Granted
) -> None:
    """One JSON document gives the same plan as many YAML files."""
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
def test_every_version_and_shape_of_a_variant_is_read(plan: Plan, shape: dict[str, Any]) -> None:
    """Objects are converted as by the webhook, also in a list of their kind."""
    head = {"apiVersion": shape["apiVersion"], "kind": "VariantAutoscalingList", "items": [shape]}
    target = deployment("llama", product="NVIDIA-A100-SXM4-80GB", accelerators=1)

    code, out, err = plan("-f", "a.yaml", "-f", "b.json", "-o", "json", "--demand", "meta/llama-3.1-8b=0",
                          files={"a.yaml": yaml.safe_dump(head), "b.json": json.dumps(target)})  # fmt: skip

    (decision,) = json.loads(out)["plan"]["decisions"]
    assert (decision["name"], decision["accelerator"]) == ("llama", "A100")
    assert (code, err) == (1, [])


def test_a_saved_decision_gives_the_same_plan(plan: Plan, world: World) -> None:
    """It contains all options of the command, and saving it again gives the same bytes."""
    asked = ("--demand", "chat=90", "--budget", "99.5", "--drain", "node-1", "--scale-to-zero")
    first = plan("-f", "-", *asked, "--save", "a.json", "-o", "json", given=world())
    again = plan("-f", "a.json", "--save", "b.json", "-o", "json")

    assert again == first
    assert Path("b.json").read_bytes() == Path("a.json").read_bytes()


def test_values_and_bounds_are_reported_for_each_level(plan: Plan) -> None:
    """The JSON document has the bound of each level, and the text has each level whose value is not zero."""
    fleet = PlanningInputs(snapshot=fleet_world("plan-plenty", 60, seed=1))
    Path("fleet.json").write_bytes(to_json(fleet))
    _, text, _ = plan("-f", "fleet.json")
    _, document, _ = plan("-f", "fleet.json", "-o", "json")

    solver = json.loads(document)["plan"]["solver"]
    assert all(level["bound"] <= level["value"] for level in solver["levels"])
    assert ("no plan is better" in text) == (not solver["unproven"])
    told = [level["level"] for level in solver["levels"] if level["value"]]
    assert told == [level for level in told if f"  {level}: " in text]


def test_a_demand_argument_overrides_the_status(plan: Plan, world: World, granted: Granted) -> None:
    """The argument may have a namespace and a fraction."""
    exported = plan("-f", "-", "-o", "json", given=world(demand=25))
    demands = ("--demand", "chat=33.5", "--demand", "default/code=0")
    stated = plan("-f", "-", "-o", "json", *demands, given=world(demand=25))

    assert granted(exported[1]) == {"chat": 3, "code": 3}
    assert granted(stated[1]) == {"chat": 4, "code": 1}


ODD_STATUSES: dict[str, tuple[dict[str, Any], float | None]] = {
    "a start time of thirty years": ({"startSeconds": 10**9}, 8.0),
    "a very large upper bound": ({"upperRequestsPerSecond": "1000000000"}, 8.0),
    "a rate beyond the maximum": ({"requestsPerSecond": "1" + "0" * 30}, None),
    "an upper bound beyond the maximum": ({"upperRequestsPerSecond": "1" + "0" * 30}, None),
    "an upper bound below the rate": ({"upperRequestsPerSecond": "1"}, 8.0),
    "request lengths beyond the maximum": ({"avgInputTokens": "9" * 30, "avgOutputTokens": "9" * 30}, 8.0),
}


@pytest.mark.parametrize(("odd", "rate"), ODD_STATUSES.values(), ids=ODD_STATUSES.keys())
def test_extreme_numbers_in_a_status_do_not_prevent_a_plan(
    plan: Plan, parts: Parts, odd: dict[str, Any], rate: float | None
) -> None:
    """Statuses can be written by hand: an impossible rate is unknown, not zero."""
    made = parts()
    made[-1]["status"]["decision"]["demand"] |= odd

    code, out, err = plan("-f", "-", "-o", "json", given=listed(*made))

    decided = {item["name"]: item for item in json.loads(out)["plan"]["decisions"]}
    assert (code in {0, 1}, err) == (True, [])
    assert decided["code"]["load"]["requests_per_second"] == rate
    assert decided["chat"]["load"]["requests_per_second"] == 8.0


LIMITS = {
    "a latency target": ("ITL 80 ms", ["ITL 80 ms"]),
    "a batch size": ("a batch of 256", ["a batch of 256"]),
    "an unknown text": ("whatever", []),
}


@pytest.mark.parametrize(("limit", "want"), LIMITS.values(), ids=LIMITS.keys())
def test_the_capacity_limit_of_a_status_is_kept(
    plan: Plan, parts: Parts, limit: object, want: list[str]
) -> None:
    """The message of the plan states the limit, as that of the controller does."""
    made = parts()
    made[-1]["status"]["decision"]["capacityLimit"] = limit

    _, out, _ = plan("-f", "-", "-o", "json", given=listed(*made))

    decided = {item["name"]: item for item in json.loads(out)["plan"]["decisions"]}
    capacity = decided["code"]["capacity"]
    assert [item["text"] for item in capacity["limits"]] == want
    assert ("within" in decided["code"]["message"]) == bool(want)


def test_the_largest_possible_demand_is_planned(plan: Plan, world: World) -> None:
    """The plan reports the model as short."""
    code, out, err = plan("-f", "-", "--demand", "chat=999999999", given=world())

    assert (code, err) == (1, [])
    assert out.splitlines()[-1].startswith("1 model short: default/c")


def test_request_lengths_can_be_given(plan: Plan, parts: Parts) -> None:
    """With a declared profile, a replica serves fewer of longer requests."""
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


def test_running_replicas_are_kept_if_demand_is_unknown(plan: Plan, world: World, granted: Granted) -> None:
    """A warning states the option that sets the demand."""
    code, out, _ = plan("-f", "-", "-o", "json", given=world(demand=None))

    assert granted(out) == {"chat": 1, "code": 1}
    assert json.loads(out)["warnings"][0] == (
        "the load of default/chat is unknown, so no running replica stops: use --demand"
        " default/chat=REQUESTS_PER_SECOND"
    )
    assert json.loads(out)["conclusion"] == (
        "no model is known to be short; models of unknown demand or capacity: default/chat, default/code"
    )
    assert code == 0


def test_a_replica_without_a_place_is_a_shortage(plan: Plan, world: World) -> None:
    """This also holds if demand is unknown: running replicas are kept, but one has no room."""
    code, out, _ = plan("-f", "-", given=world(demand=None, nodes=1, size=1))

    assert code == 1
    assert out.splitlines()[-1].startswith("1 model short: default/c")


def test_a_capacity_can_be_given_as_an_argument(plan: Plan, granted: Granted) -> None:
    """Without it, a warning names the option; with it, the capacity is used for planning."""
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
    "a drained node is emptied": (["--drain", "node-1"], {"node-2": 2, "node-1": 0}),
    "new nodes are used": (
        ["--add-node", "L4x8:2", "--drain", "node-1", "--drain", "node-2"],
        {"new-l4-1": 2},
    ),
}


@pytest.mark.parametrize(("arguments", "expected"), CHANGES.values(), ids=CHANGES.keys())
def test_nodes_can_be_added_and_drained(
    plan: Plan, world: World, arguments: list[str], expected: dict[str, int]
) -> None:
    """An added node has the labels of its type, so that node selectors of variants match it."""
    code, out, _ = plan("-f", "-", "-o", "json", *arguments, given=world())

    held = {node["name"]: sum(v["pods"] for v in node["variants"]) for node in json.loads(out)["nodes"]}
    assert held == held | expected
    assert code == 0


def test_only_pods_on_a_drained_node_move(plan: Plan, parts: Parts) -> None:
    """A pod in the files stays on its node until that is drained."""
    given = listed(*parts(), pod_of("chat", "node-2"))

    places = []
    for arguments in ([], ["--drain", "node-2"]):
        _, out, _ = plan("-f", "-", "-o", "json", *arguments, given=given)
        nodes = json.loads(out)["nodes"]
        places.append([
            (node["name"], variant["new_pods"])
            for node in nodes for variant in node["variants"] if variant["name"] == "chat"
        ])  # fmt: skip

    assert places == [[("node-2", 0)], [("node-1", 1)]]


def test_a_budget_given_as_an_argument_is_respected(plan: Plan, world: World) -> None:
    """A decision that it limits names it as the bound."""
    code, out, _ = plan("-f", "-", "-o", "json", "--demand", "chat=60", "--budget", "120", given=world())

    document = json.loads(out)
    assert float(document["plan"]["cost"]) <= 120
    assert code == 1
    assert "Budget" in {decision["bound_by"] for decision in document["plan"]["decisions"]}


def test_scale_to_zero_stops_idle_models(plan: Plan, world: World, granted: Granted) -> None:
    """Without it one replica of each model is kept."""
    warm = plan("-f", "-", "-o", "json", given=world(demand=0))
    cold = plan("-f", "-", "-o", "json", "--scale-to-zero", given=world(demand=0))

    assert granted(warm[1]) == {"chat": 1, "code": 1}
    assert granted(cold[1]) == {"chat": 0, "code": 0}


def test_the_exit_code_is_1_if_a_model_is_short(plan: Plan, world: World) -> None:
    """The last line names the model."""
    code, out, _ = plan("-f", "-", "--demand", "chat=85", given=world())

    assert code == 1
    assert out.splitlines()[-1].startswith("1 model short: default/ch")


def test_yaml_output_equals_json_output(plan: Plan, world: World) -> None:
    """The top-level members are also checked."""
    _, as_yaml, _ = plan("-f", "-", "-o", "yaml", given=world())
    _, as_json, _ = plan("-f", "-", "-o", "json", given=world())

    assert yaml.safe_load(as_yaml) == json.loads(as_json)
    assert set(json.loads(as_json)) == {"is_enough", "conclusion", "warnings", "assumed", "plan", "nodes"}


USELESS = {
    "of a type that no variant uses": (
        "H100x8",
        "--add-node H100x8: no variant can use such a node; the variants use L4",
    ),
    "too small for every pod": ("L4x1", "--add-node L4x1: no pod fits on such a node, the smallest takes 2"),
}


@pytest.mark.parametrize(("shape", "told"), USELESS.values(), ids=USELESS.keys())
def test_added_nodes_that_no_pod_can_use_cause_a_warning(
    plan: Plan, parts: Parts, shape: str, told: str
) -> None:
    """The plan includes them anyway; useful nodes cause no warning."""
    made = parts()
    for item in (item for item in made if item["kind"] == "Deployment"):
        (container,) = item["spec"]["template"]["spec"]["containers"]
        container["resources"]["limits"]["nvidia.com/gpu"] = 2
    files = {"a.yaml": listed(*made)}

    _, out, _ = plan("-f", "a.yaml", "--add-node", shape, "-o", "json", files=files)
    _, useful, _ = plan("-f", "a.yaml", "--add-node", "L4x2", "-o", "json")

    assert json.loads(out)["warnings"] == [told]
    assert json.loads(useful)["warnings"] == []


def test_a_saved_decision_without_variants_is_rejected(plan: Plan) -> None:
    """The exit code is 2, as for manifests without variants."""
    code, out, err = plan("-f", "a.json", files={"a.json": '{"snapshot": {"nodes": [], "variants": []}}'})

    assert (code, out) == (2, "")
    assert "nothing to plan: the input contains no VariantAutoscaling" in err[0]


def test_a_given_capacity_of_zero_stays_zero(plan: Plan, parts: Parts) -> None:
    """Neither a profile nor other variants of the model replace it, even after saving and reading."""
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
