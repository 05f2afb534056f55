"""Texts, headings and examples of the documentation."""

from __future__ import annotations

import re
from pathlib import Path

from hack.installation.manifests import ROOT


def example(document: str, kind: str) -> str:
    """Return the only YAML of a document that contains an object of a kind, or a trigger of a type."""
    text = (ROOT / document).read_text(encoding="utf-8")
    blocks = re.findall(r"^```yaml\n(.*?)^```$", text, re.DOTALL | re.MULTILINE)
    (found,) = (block for block in blocks if re.search(rf"^(kind|- type): {kind}$", block, re.MULTILINE))
    return str(found)


def text_of(document: Path) -> str:
    """Return a document without its code blocks."""
    return re.sub(r"^```.*?^```", "", document.read_text("utf-8"), flags=re.DOTALL | re.MULTILINE)


def anchors(document: Path) -> set[str]:
    """Return the anchors that GitHub generates for the headings of a document."""
    headings = re.findall(r"^#+ (.*)$", text_of(document), flags=re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-") for heading in headings}
