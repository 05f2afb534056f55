"""Names of workloads in the output of `stowplan plan`."""

from __future__ import annotations

from support.plan_verb import Plan
from support.samples import SAMPLES


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
