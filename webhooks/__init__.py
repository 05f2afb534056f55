"""Admission and conversion over HTTPS.

`review` knows the envelopes and nothing else; `admission`, `mutate`, `validate` and `convert` decide, as pure
functions of a request; `references` looks at other objects to advise, never to refuse; `app` serves.

`run` starts; `process` answers conversions at once, while `later` loads `judging`: what admission takes.
"""
