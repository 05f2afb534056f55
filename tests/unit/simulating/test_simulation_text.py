"""What a terminal shows of a run."""

from __future__ import annotations

from controller.closedloop.outcome import Outcome
from controller.closedloop.policy import Told
from controller.closedloop.scenario import Model, NodeGroup, Scenario, Targets
from controller.offline.terminal import drawn, terminal
from controller.simulating.results import Results
from controller.simulating.text import text_parts
from controller.simulation.curve import Curve
from controller.simulation.trace import load_trace
from controller.simulation.workload import Drawn

CURVE = Curve(shape="constant", high=1.0)
LENGTHS = load_trace("azure-llm-2023-conv")


def told(seconds: float, current: int, replicas: int) -> Told:
    """Return a decision in the words of the planner."""
    moves = f"goes from {current} to {replicas}" if current != replicas else f"stays at {replicas}"
    return Told(
        seconds=seconds,
        variant="v",
        replicas=replicas,
        current_replicas=current,
        sentence=f"v {moves} replicas",
    )


def changes(*decisions: Told) -> list[str]:
    """Return the lines below `what stowplan changed`."""
    model = Model(model_id="m", workload=Drawn(curve=CURVE, lengths=LENGTHS), targets=Targets(ttft_seconds=2))
    scenario = Scenario(
        name="s",
        models=(model,),
        variants=(),
        nodes=(NodeGroup(accelerator="H100", accelerators=8, count=1),),
    )
    outcome = Outcome(
        scenario="s",
        policy="stowplan",
        cost=0.0,
        requests=0,
        missed=0.0,
        missed_ttft=0.0,
        missed_itl=0.0,
        never_finished=0.0,
        models=(),
        variants=(),
        points=(),
        told=decisions,
    )
    parts = text_parts(Results(scenario=scenario, outcomes=(outcome,)))
    lines = drawn(parts, terminal(120)).splitlines()
    return lines[lines.index("what stowplan changed:") + 1 :] if "what stowplan changed:" in lines else []


def test_what_changed_are_other_numbers_than_those_of_the_decision_before() -> None:
    """While the autoscaler waits, the same decision comes again and again."""
    found = changes(told(-15, 2, 2), told(15, 2, 4), told(30, 3, 4), told(45, 4, 3))

    assert found == ["  0:00:15  v goes from 2 to 4 replicas", "  0:00:45  v goes from 4 to 3 replicas"]


def test_what_stays_has_not_changed() -> None:
    """The decision is another one than before, but what runs already is what it asks for."""
    found = changes(told(0, 3, 3), told(15, 3, 2), told(30, 3, 3), told(45, 3, 2))

    assert found == ["  0:00:15  v goes from 3 to 2 replicas", "  0:00:45  v goes from 3 to 2 replicas"]
