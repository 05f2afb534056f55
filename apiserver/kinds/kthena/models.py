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
                Column(
                    name="Engine",
                    type="string",
                    json_path=".spec.backends[0].type",
                    description="Engine of the first backend.",
                ),
                Column(
                    name="Source",
                    type="string",
                    json_path=".spec.backends[0].modelURI",
                    description="Source of the model of the first backend.",
                ),
                condition("Active", "Active", description="Whether all backends are ready."),
                condition("Failed", "Failed", description="Whether action is required."),
                Column(
                    name="Replicas",
                    type="integer",
                    json_path=".status.replicas",
                    description="Current replicas of all backends.",
                ),
                AGE,
                Column(
                    name="Owner",
                    type="string",
                    json_path=".spec.owner",
                    description="Owner of the model.",
                    priority=1,
                ),
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
