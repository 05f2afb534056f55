"""Generates files from declarations: CRDs, reference pages and tables, and JSON schemas for editors.

`python -m hack.generate` writes them; `python -m hack.generate --verify` compares, and on a difference fails
and names the command that fixes it.
"""

from __future__ import annotations

import difflib
import json
import re
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Final

import yaml

from apiserver.kinds.registry import DEFINED, FAMILIES, KINDS, Family
from apiserver.kinds.settings import PriceDocument, ServiceClassDocument
from apiserver.metrics.run import MetricsConfig
from apiserver.schema.editor import editor_schema
from apiserver.schema.json import Json
from apiserver.schema.reference import configuration_page, documents_page, kind_page, settings_table
from apiserver.schema.structural import crd_manifest
from controller.commands.simulate.scenario_fields import ScenarioFile
from controller.config import ControllerConfig
from controller.config_planning import PlanningConfig
from controller.models.run import ModelsConfig
from webhooks.config import WebhooksConfig
from webhooks.registration import registrations

ROOT: Final = Path(__file__).resolve().parent.parent
_BANNER: Final = "# Generated from apiserver/kinds by `make generate`. Edits are lost.\n"
_SHOWN_LINES: Final = 20

_SETTINGS: Final = Path("docs/demand.md")
_TABLE: Final = re.compile(
    r"(<!-- generated from the configuration of planning: ([^>]*?) -->)\n.*?\n(<!-- end -->)", re.DOTALL
)
"""Matches a table of settings after a comment that lists its fields."""

_CONFIGURATIONS: Final = (
    ("webhooks", WebhooksConfig),
    ("apiserver", MetricsConfig),
    ("controller", ControllerConfig),
    ("models", ModelsConfig),
)


def derived_files() -> Mapping[Path, str]:
    """Return the text of every generated file by its path in the project."""
    files: dict[Path, str] = {}
    for kind in DEFINED:
        files[Path("manifests/reference") / f"{kind.singular}.md"] = kind_page(kind)
    for kind in KINDS:
        for version in kind.versions:
            schema = json.dumps(editor_schema(kind, version), indent=1, ensure_ascii=False)
            files[Path("manifests/schemas") / f"{kind.crd_name}_{version.name}.json"] = f"{schema}\n"
    for family in FAMILIES:
        files |= _family_files(family)
    for verb, declared in _CONFIGURATIONS:
        page = configuration_page(f"Configuration of `stowplan {verb}`", verb, declared)
        files[Path("manifests/reference") / f"config-{verb}.md"] = page
    files[Path("manifests/reference/settings.md")] = documents_page(
        "Settings in ConfigMaps",
        "The texts in the ConfigMaps of service classes and of prices"
        " ([docs/settings.md](../../docs/settings.md)).",
        ServiceClassDocument,
        PriceDocument,
    )
    files[Path("manifests/reference/scenario.md")] = documents_page(
        "Scenarios of `stowplan simulate`",
        "The fields of a scenario file ([docs/simulating.md](../../docs/simulating.md#scenarios)).",
        ScenarioFile,
    )
    files[_SETTINGS] = _with_tables((ROOT / _SETTINGS).read_text(encoding="utf-8"))
    return files


def _family_files(family: Family) -> Mapping[Path, str]:
    """Return the definitions of a family's kinds with their kustomization, and its webhook configurations."""
    files = {_guard_folder(family) / "webhook-configurations.yaml": _yaml(*registrations(family))}
    if not family.has_definitions:
        return files
    definitions = Path("manifests/crds") / family.name
    kustomization = {
        "apiVersion": "kustomize.config.k8s.io/v1beta1",
        "kind": "Kustomization",
        "resources": [f"{kind.crd_name}.yaml" for kind in family.kinds],
    }
    files |= {
        definitions / f"{kind.crd_name}.yaml": _yaml(crd_manifest(kind), allow_unicode=True)
        for kind in family.kinds
    }
    files[definitions / "kustomization.yaml"] = _yaml(kustomization)
    return files


def _guard_folder(family: Family) -> Path:
    if not family.is_foreign:
        return Path("manifests/base")
    suffix = "-without-crds" if family.has_definitions else ""
    return Path("manifests/components") / f"{family.name}{suffix}"


def _yaml(*documents: Json, allow_unicode: bool = False) -> str:
    return _BANNER + yaml.safe_dump_all(documents, sort_keys=False, width=110, allow_unicode=allow_unicode)


def _with_tables(text: str) -> str:
    """Return a document with its tables of settings regenerated from the declaration."""

    def table(match: re.Match[str]) -> str:
        return f"{match[1]}\n{settings_table(PlanningConfig, match[2].split())}\n{match[3]}"

    return _TABLE.sub(table, text)


def write(root: Path = ROOT) -> int:
    """Write every generated file; print the ones that changed."""
    for path, text in derived_files().items():
        if _on_disk(root / path) != text:
            (root / path).parent.mkdir(parents=True, exist_ok=True)
            (root / path).write_text(text, encoding="utf-8")
            print(f"wrote {path}")
    return 0


def verify(root: Path = ROOT) -> int:
    """Return 1 if a generated file is stale; show the difference and the command that fixes it."""
    derived = derived_files()
    stale = [path for path, text in derived.items() if _on_disk(root / path) != text]
    for path in stale:
        was, now = _on_disk(root / path).splitlines(), derived[path].splitlines()
        difference = list(difflib.unified_diff(was, now, str(path), f"{path} (derived)", lineterm="", n=1))
        print("\n".join(difference[:_SHOWN_LINES]))
    if stale:
        print(f"stale: {', '.join(map(str, stale))}; run `make generate`", file=sys.stderr)
    return 1 if stale else 0


def _on_disk(path: Path) -> str:
    return path.read_text(encoding="utf-8") if path.exists() else ""


if __name__ == "__main__":
    sys.exit(verify() if "--verify" in sys.argv[1:] else write())
