"""The names in what `stowplan plan` prints."""

from __future__ import annotations

from collections.abc import Callable

from support.samples import SAMPLES

Plan = Callable[..., tuple[int, str, list[str]]]


def test_workloads_of_other_namespaces_are_named_whatever_the_controller_does(plan: Plan) -> None:
    """Whoever can read the files may know the names in them; statuses in a cluster name none by default."""
    texts = {f"in/{path.name}": path.read_text("utf-8") for path in sorted((SAMPLES / "plan").iterdir())}
    for name, text in texts.items():
        documents = text.split("\n---\n")
        moved = (item.replace("namespace: chat", "namespace: code") for item in documents if "qwen" in item)
        texts[name] = "\n---\n".join([*moved, *(item for item in documents if "qwen" not in item)])
    told = ["-f", "in", "--config", "c.yaml", "--demand", "meta/llama-3.1-70b=90"]

    _, out, _ = plan(*told, files=texts | {"c.yaml": "planning: {}\n"})

    assert "held by priority 1 chat/llama-70b-h100" in " ".join(out.split())
