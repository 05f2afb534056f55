"""The kind Model: names, printer columns, object defaults and warnings."""

from __future__ import annotations

from typing import Final

from apiserver.kinds.columns import AGE, condition
from apiserver.kinds.kthena.groups import REGISTRY
from apiserver.kinds.kthena.model import Model
from apiserver.kinds.kthena.modeladvice import model_advice
from apiserver.kinds.kthena.modelfill import model_fill
from apiserver.schema.kind import Column, Kind, Version

MODEL: Final = Kind(
    group=REGISTRY,
    kind="Model",
    plural="models",
    singular="model",
    short_names=("mdl",),
    categories=("stowplan",),
    versions=(
        Version(
            name="v1alpha1",
            declaration=Model,
            is_storage=True,
            columns=(
                Column("Engine", "string", ".spec.backends[0].type", "Engine of the first backend."),
                Column(
                    "Source",
                    "string",
                    ".spec.backends[0].modelURI",
                    "Source of the model of the first backend.",
                ),
                condition("Active", "Active", description="Whether all backends are ready."),
                condition("Failed", "Failed", description="Whether action is required."),
                Column("Replicas", "integer", ".status.replicas", "Current replicas of all backends."),
                AGE,
                Column("Owner", "string", ".spec.owner", "Owner of the model.", priority=1),
                condition(
                    "Active", "Reason", member="reason", description="Reason, in one word.", priority=1
                ),
                condition(
                    "Active", "Message", member="message", description="Reason, in one sentence.", priority=1
                ),
                condition("Failed", "Cause", member="message", description="What failed.", priority=1),
            ),
            fill=(model_fill,),
            advise=(model_advice,),
        ),
    ),
)
