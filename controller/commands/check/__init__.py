"""`stowplan check`: admission offline, with the same messages and the line numbers of the file.

- the verb: `run`; its inputs: `sources`; its output: `text`, from `result`; valid objects as YAML: `objects`
- objects of a file: `manifests`; one object: `judge`, with `matching` for unknown kinds,
  `namespaces`, and `settings` in ConfigMaps
- parsing as kubectl does it: `documents`, `json_text`, `scalars`, `strictness`, into values with lines:
  `tree`
"""
