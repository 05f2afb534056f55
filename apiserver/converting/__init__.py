"""`stowplan convert`: the webhook's conversion offline, on files that keep their comments and order.

- the verb: `run`; one value: `objects`
- texts of files: `documents`; edits that preserve unchanged parts: `splice` for YAML, `json_documents` for
  JSON
"""
