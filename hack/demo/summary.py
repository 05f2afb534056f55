"""What the demo says at its end."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rich import box
from rich.table import Table
from rich.text import Text

if TYPE_CHECKING:
    from collections.abc import Iterable
    from pathlib import Path

    from rich.console import Console

    from hack.demo.checks import Finding


def print_summary(console: Console, findings: Iterable[Finding]) -> None:
    """Print one row per check; on a pipe, one line."""
    found = list(findings)
    if not console.is_terminal:
        for finding in found:
            console.print(
                f"{'ok  ' if finding.holds else 'FAIL'} {finding.name}: {finding.detail}",
                soft_wrap=True,
                highlight=False,
                markup=False,
            )
        return
    table = Table(box=box.SIMPLE_HEAD, title="what was checked", title_justify="left")
    for heading in ("", "check", "seen"):
        table.add_column(heading, overflow="fold")
    for finding in found:
        mark = Text("ok", "green") if finding.holds else Text("FAIL", "bold red")
        table.add_row(mark, finding.name, Text(finding.detail))
    console.print(table)


def how_to_look_around(*, kubectl: Path, kubeconfig: Path) -> str:
    """Return what a person can do while the demo is left running."""
    return f"""
The control plane, Stowplan and the engines go on until Ctrl-C. In another terminal:

  export KUBECONFIG={kubeconfig}
  alias kubectl={kubectl}
  kubectl get va -n demo -o wide                # decisions, and why
  kubectl describe va llama-70b-h100 -n demo    # one of them with conditions and events
  kubectl get variantautoscalings.v1alpha1.llmd.ai llama-70b-h100 -n demo -o yaml   # its older version
  kubectl get hpa -n demo -w                    # watch the HorizontalPodAutoscaler follow
  kubectl get events -n demo --field-selector involvedObject.kind=VariantAutoscaling
  kubectl get --raw '/apis/external.metrics.k8s.io/v1beta1/namespaces/demo/wva_desired_replicas'
  kubectl apply -f manifests/samples/demo/refused/mixed-shapes.yaml   # see it refused
"""
