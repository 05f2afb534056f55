"""A plan as one JSON document, with the field names of planning."""

from __future__ import annotations

import msgspec

from apiserver.schema.json import Json
from controller.offline.layout import NodeLayout, layouts
from controller.offline.text import Shown, conclusion


def as_document(shown: Shown) -> Json:
    """Return the plan, the pods on each node after it, and the warnings."""
    return {
        "is_enough": shown.is_enough,
        "conclusion": conclusion(shown),
        "warnings": list(shown.warnings),
        "plan": msgspec.to_builtins(shown.plan),
        "nodes": [_node(item) for item in layouts(shown.snapshot, shown.plan)],
    }


def _node(item: NodeLayout) -> Json:
    return {
        "name": item.node.name,
        "accelerator": item.node.accelerator,
        "accelerators": item.node.accelerators_allocatable,
        "accelerators_free": item.free,
        "accelerators_used_by_others": item.others,
        "is_schedulable": item.node.schedulable,
        "variants": [
            {
                "namespace": holding.variant[0],
                "name": holding.variant[1],
                "pods": holding.stays + holding.comes,
                "new_pods": holding.comes,
            }
            for holding in item.holdings
        ],
    }
