"""`/validate-settings`: rejects ConfigMaps of service classes and prices that cannot be used as written."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

import msgspec

from apiserver.kinds.settings import settings_errors
from apiserver.kinds.settings_names import ALLOW_EMPTY, NamesConfig, are_settings, holds_back
from apiserver.schema import errors
from apiserver.schema.json import Json
from webhooks.admission import UnreadableObjectError, opened
from webhooks.large import in_thread
from webhooks.review import AdmissionRequest, AdmissionResponse, ReviewedObject

_MOST_ERRORS: Final = 100
_data: Final = msgspec.json.Decoder(dict[str, str] | None)


@dataclass(frozen=True, kw_only=True, slots=True)
class SettingsAdmission:
    """Admission of the ConfigMaps of settings in one namespace."""

    namespace: str
    names: NamesConfig

    async def validate(self, request: AdmissionRequest) -> AdmissionResponse:
        """Return the response to a request; it is computed in a thread, like all costly ones."""
        return await in_thread(self.judged, request)

    def judged(self, request: AdmissionRequest) -> AdmissionResponse:
        """Return a rejection with all errors, or warnings.

        An entry that the update leaves as it is causes a warning only: it must not hinder a change of others.
        """
        try:
            sent, stored = opened(request.object), opened(request.old_object)
            now, before = _entries(sent), _entries(stored)
        except UnreadableObjectError as error:
            return AdmissionResponse(refusal=_unreadable(str(error)))
        name = str(((sent.metadata or {}).get("name") or "") if sent else "")
        if request.namespace != self.namespace or not are_settings(name, self.names):
            return AdmissionResponse()
        fresh = {key: text for key, text in now.items() if before.get(key) != text}
        known = {key: text for key, text in now.items() if key not in fresh}
        if found := settings_errors(name, fresh, self.names):
            return AdmissionResponse(
                refusal=errors.invalid_status("", "ConfigMap", name, found[:_MOST_ERRORS])
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


def _unreadable(message: str) -> Json:
    return {"status": "Failure", "code": 422, "reason": "Invalid", "message": message}
