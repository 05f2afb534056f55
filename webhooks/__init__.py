"""Admission and conversion webhooks, served over HTTPS.

`review` decodes and encodes the review envelopes; `decision` (with `admission`) and `convert` answer one
request; `references` warns about other objects but never rejects; `app` serves the routes.

`run` is the entry point. `process` answers conversions at once, while it loads `judging` for admission.

- permissions: `permissions`, asked by `authorizer`
- writers of objects: `authorship`, `tenancy`; scale targets: `scaling`, `claims`; caches of other objects:
  `referents`
- ConfigMaps of settings: `settings`; annotated `autoscalers`
- what the API server calls: `registration`; configuration: `config`
- large input: `large`
"""
