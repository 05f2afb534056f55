"""Examples in the documentation."""

from __future__ import annotations

import re

from hack.installation.manifests import ROOT


def example(document: str, kind: str) -> str:
    """Return the only YAML of a document that contains an object of a kind."""
    text = (ROOT / document).read_text(encoding="utf-8")
    blocks = re.findall(r"^```yaml\n(.*?)^```$", text, re.DOTALL | re.MULTILINE)
    (found,) = (block for block in blocks if f"\nkind: {kind}\n" in block)
    return str(found)
