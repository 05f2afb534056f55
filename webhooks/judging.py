"""Assembly of admission: decision functions, permission checks, and caches of referenced objects.

`/validate-settings` rejects ConfigMaps of service classes and prices that cannot be used as written;
`/validate-autoscalers` warns about annotated autoscalers.
"""

from __future__ import annotations

import asyncio
import gc
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import islice
from typing import Final

import msgspec

from apiserver.cluster.client import Cluster
from apiserver.cluster.errors import NotConfigured
from apiserver.cluster.namespaces import installation_namespace
from apiserver.kinds.annotated import MANAGED, managed_autoscalers, term_problems
from apiserver.kinds.annotations import annotation_advice
from apiserver.kinds.autoscalers import KEDA_LABEL, autoscaler_of
from apiserver.kinds.following import following_problems, variant_subject
from apiserver.kinds.metric_labels import annotated_labels
from apiserver.kinds.registry import KINDS
from apiserver.kinds.scalable import Scalable
from apiserver.kinds.settings import settings_errors
from apiserver.kinds.settings_names import ALLOW_EMPTY, NamesConfig, are_settings, holds_back
from apiserver.log import EventLogger
from apiserver.schema import errors
from apiserver.schema.json import Json, as_object
from apiserver.schema.validation import judge
from webhooks.admission import UnreadableObjectError, decode_object, plain_object
from webhooks.config import ScalingConfig, WebhooksConfig
from webhooks.decision import in_thread, mutate, validate
from webhooks.permissions import Authorizer
from webhooks.referents import Referents
from webhooks.review import AdmissionRequest, AdmissionResponse, Judges, ReviewedObject, failure_status
from webhooks.scaling import OPEN, ScalingAdmission, Tenancy

_MOST_WARNINGS: Final = 16
_SHOWN_CHARACTERS: Final = 40
_SWITCH: Final = frozenset({"true", "false"})

_log = EventLogger(__name__)


async def advise_on_autoscaler(request: AdmissionRequest) -> AdmissionResponse:
    """Return the response to a write of an autoscaler, which is always allowed."""
    try:
        sent = decode_object(request.object)
        if sent is None:
            return AdmissionResponse()
        warnings = autoscaler_warnings(plain_object(sent, request.namespace or ""))
        return AdmissionResponse(warnings=tuple(islice(warnings, _MOST_WARNINGS)))
    except Exception:  # noqa: BLE001 (without advice, the object is as good as before)
        _log.exception("no advice about an autoscaler", uid=request.uid)
        return AdmissionResponse()


def autoscaler_warnings(value: Json) -> Iterator[str]:
    """Yield what is wrong with a raw HorizontalPodAutoscaler as a variant; nothing for KEDA's copies."""
    metadata = value["metadata"]
    if KEDA_LABEL in as_object(metadata.get("labels")):
        return
    text = as_object(metadata.get("annotations")).get(MANAGED)
    if text is not None and text not in _SWITCH:
        shown = text if len(text) <= _SHOWN_CHARACTERS else f"{text[:_SHOWN_CHARACTERS]}…"
        yield f"metadata.annotations[{MANAGED}]: only 'true' lets it be planned, was {shown!r}"
    for item in managed_autoscalers([value], ()):
        yield from term_problems(item)
        yield from annotation_advice("HorizontalPodAutoscaler", item)
        named = item["metadata"].get("name")  # with generateName, it is not known yet
        subject = variant_subject(annotated_labels(item, {})) if named else None
        for problem in following_problems([autoscaler_of(item)], subject) if subject else ():
            yield problem.message


_MOST_ERRORS: Final = 100
_data: Final = msgspec.json.Decoder(dict[str, str] | None)


@dataclass(frozen=True, kw_only=True, slots=True)
class SettingsAdmission:
    """Admission of the ConfigMaps of settings in one namespace."""

    namespace: str
    names: NamesConfig

    async def validate(self, request: AdmissionRequest) -> AdmissionResponse:
        """Return the response to a request; it is computed in a thread, like all costly ones."""
        return await in_thread(self.judge, request)

    def judge(self, request: AdmissionRequest) -> AdmissionResponse:
        """Return a rejection with all errors, or warnings.

        An entry that the update leaves as it is causes a warning only: it must not hinder a change of others.
        """
        try:
            sent, stored = decode_object(request.object), decode_object(request.old_object)
            now, before = _entries(sent), _entries(stored)
        except UnreadableObjectError as error:
            return AdmissionResponse(refusal=failure_status(422, "Invalid", str(error)))
        name = str(((sent.metadata or {}).get("name") or "") if sent else "")
        if request.namespace != self.namespace or not are_settings(name, self.names):
            return AdmissionResponse()
        fresh = {key: text for key, text in now.items() if before.get(key) != text}
        known = {key: text for key, text in now.items() if key not in fresh}
        if problems := settings_errors(name, fresh, self.names):
            return AdmissionResponse(
                refusal=errors.invalid_status("", "ConfigMap", name, problems[:_MOST_ERRORS])
            )
        warnings = [str(error) for error in settings_errors(name, known, self.names)]
        metadata: Json = dict(sent.metadata or {}) if sent else {}
        if before and holds_back(metadata, now):
            warnings.append(
                "data: the last valid content stays in force: to give it up, set the annotation"
                f' {ALLOW_EMPTY} to "true"'
            )
        return AdmissionResponse(warnings=tuple(warnings[:_MOST_ERRORS]))


def _entries(value: ReviewedObject | None) -> dict[str, str]:
    if value is None or isinstance(value.data, msgspec.UnsetType):
        return {}
    try:
        return _data.decode(value.data) or {}
    except msgspec.MsgspecError as error:
        raise UnreadableObjectError(f"the object cannot be read: {error}") from error


def judges_of(
    scaling: ScalingAdmission,
    referents: Referents,
    tenancy: Tenancy = OPEN,
    settings: SettingsAdmission | None = None,
) -> Judges:
    """Return the decision functions for admission requests."""
    return {
        "validate-autoscalers": advise_on_autoscaler,
        "validate-settings": (settings or SettingsAdmission(namespace="", names=NamesConfig())).validate,
        "mutate": lambda request: mutate(request, scaling, tenancy),
        "validate": lambda request: validate(request, scaling, referents, tenancy),
    }


def scaling_of(config: ScalingConfig, authorizer: Authorizer) -> ScalingAdmission:
    """Return the configured rules for scale targets."""
    resources = {
        (item.group, item.kind): Scalable(resource=item.resource, has_scale=item.has_scale)
        for item in config.resources
    }
    return ScalingAdmission(resources=resources, authorizer=authorizer if config.authorize else None)


class AdmissionService:
    """Admission with its caches; `follow` connects to the cluster and fills them."""

    def __init__(self, config: WebhooksConfig) -> None:
        self._config = config
        namespace = config.namespace or installation_namespace(
            config.cluster.kubeconfig, config.cluster.context
        )
        self._referents, self._authorizer = Referents(namespace), Authorizer()
        tenancy = Tenancy(authorizer=self._authorizer, namespace=namespace) if config.tenants else OPEN
        settings = SettingsAdmission(namespace=namespace, names=config.names)
        scaling = scaling_of(config.scaling, self._authorizer)
        self.judges = judges_of(scaling, self._referents, tenancy, settings)
        """The decision functions for admission requests."""

    async def follow(self) -> None:
        """Compile the validators ahead of the first review, then keep the caches current until cancelled."""
        cluster = self._config.cluster
        try:
            connection = await Cluster.connect(cluster.kubeconfig, cluster.context)
        except NotConfigured as error:
            _log.warning(
                "no cluster: no warnings about other objects, and permissions to scale cannot be checked",
                why=error.message,
            )
            await _compile_judges()
            await asyncio.Event().wait()
            return
        async with connection as connected:
            self._authorizer.use(connected)
            await _compile_judges()
            await self._referents.follow(connected)


async def _compile_judges() -> None:
    for declared in (served.declaration for kind in KINDS for served in kind.versions):
        await asyncio.to_thread(judge, declared)
    gc.freeze()  # loaded and compiled objects live forever, so collections can skip them
