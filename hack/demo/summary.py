"""The demo's output at its end."""

from __future__ import annotations

import traceback
from collections.abc import Iterable, Sequence
from pathlib import Path

from rich import box
from rich.console import Console
from rich.table import Table
from rich.text import Text

from hack.controlplane.errors import ControlPlaneError
from hack.demo.checks import CheckFinding
from hack.demo.comparison import Account

_COMPARED = (
    "Missed requests exceed a target (TTFT or ITL) or never finish. The cost of a replica starts when it is"
    " assigned to a node. Reversals are the changes of direction of the variant with the most. The plain"
    " HPA is simulated with the same requests, nodes and start-up times, with the default behavior at the"
    " demo's pace. Its target is the number of waiting and running requests per replica, for each"
    " Deployment separately, or for one variant of each model, the best choice with hindsight. It does not"
    " consider priorities."
)


def print_summary(console: Console, findings: Iterable[CheckFinding]) -> None:
    """Print one row per check, or one line on a pipe."""
    checks = list(findings)
    if not console.is_terminal:
        for finding in checks:
            console.print(
                f"{'ok  ' if finding.holds else 'FAIL'} {finding.name}: {finding.detail}",
                soft_wrap=True,
                highlight=False,
                markup=False,
            )
        return
    table = Table(box=box.SIMPLE_HEAD, title="checks", title_justify="left")
    for heading in ("", "check", "seen"):
        table.add_column(heading, overflow="fold")
    for finding in checks:
        mark = Text("ok", "green") if finding.holds else Text("FAIL", "bold red")
        table.add_row(mark, finding.name, Text(finding.detail))
    console.print(table)


def first_cause(group: BaseExceptionGroup[Exception]) -> Exception:
    """Return the error that ended a group of tasks; the others were only cancelled because of it."""
    error = group.exceptions[0]
    return first_cause(error) if isinstance(error, BaseExceptionGroup) else error


def print_cause(console: Console, error: Exception) -> None:
    """Print why the demo itself failed, as one line with its place in the source."""
    frames = traceback.extract_tb(error.__traceback__)
    place = f" ({Path(frames[-1].filename).name}:{frames[-1].lineno})" if frames else ""
    text = " ".join(str(error).split()) or "no message"
    what = text if isinstance(error, ControlPlaneError) else f"{type(error).__name__}: {text}"
    console.print(f"the demo itself failed: {what}{place}", soft_wrap=True, highlight=False, markup=False)


def print_comparison(console: Console, accounts: Sequence[Account]) -> None:
    """Print a row per policy, or a line on a pipe: missed requests of each model, cost and reversals."""
    console.print(_COMPARED, highlight=False, soft_wrap=not console.is_terminal)
    models = list(accounts[0].missed) if accounts else []
    rows = [
        (
            account.policy,
            *(f"{account.missed[model_id]:.1%}" for model_id in models),
            f"{account.cost:.0f}",
            str(max(account.reversals.values(), default=0)),
        )
        for account in accounts
    ]
    headings = ("", *(f"{model_id} missed" for model_id in models), "cost", "reversals")
    if not console.is_terminal:
        for row in rows:
            cells = (f"{heading} {cell}".strip() for heading, cell in zip(headings, row, strict=True))
            console.print(", ".join(cells), soft_wrap=True, highlight=False, markup=False)
        return
    table = Table(box=box.SIMPLE_HEAD, title="results", title_justify="left")
    for number, heading in enumerate(headings):
        table.add_column(heading, justify="right" if number else "left", overflow="fold")
    for row in rows:
        table.add_row(*row)
    console.print(table)


def how_to_look_around(*, kubectl: Path, kubeconfig: Path) -> str:
    """Return instructions for users while the demo is left running."""
    return f"""
The control plane, Stowplan and the engines keep running until Ctrl-C. In another terminal:

  export KUBECONFIG={kubeconfig}
  alias kubectl={kubectl}
  kubectl get va -n demo -o wide                # decisions, and why
  kubectl describe va llama-70b-h100 -n demo    # one of them with conditions and events
  kubectl get variantautoscalings.v1alpha1.llmd.ai llama-70b-h100 -n demo -o yaml   # its older version
  kubectl describe hpa llama-8b-l40s -n demo    # an annotated autoscaler, with its events
  kubectl get aspb -n demo                      # what the policy scales; `describe` says why
  kubectl describe model chat -n demo           # one Model, and what it waits for
  kubectl get hpa -n demo -w                    # watch the HorizontalPodAutoscaler follow
  kubectl get events -n demo --field-selector involvedObject.kind=VariantAutoscaling
  kubectl get --raw '/apis/external.metrics.k8s.io/v1beta1/namespaces/demo/wva_desired_replicas'
  kubectl apply -f manifests/samples/demo/refused/mixed-shapes.yaml   # see it refused
"""
