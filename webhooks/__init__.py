"""Admission and conversion webhooks, served over HTTPS.

- `run`: the entry point, with its `config`; `app`: the routes, and conversion, which is answered at once,
  while `judging` is loaded for admission
- `review`: decoding and encoding of reviews
- `decision`: the response to one request; `admission`: its object and its writer; `judging`: what decides,
  with ConfigMaps of settings and annotated autoscalers
- `scaling`: what a writer must be allowed to do; `permissions`: checks of that
- `referents`: warnings about other objects, which are never rejections
- `registration`: what the API server calls
"""
