"""`stowplan convert`: the webhook's conversion offline, on files that keep their comments and order.

- the verb: `run`; one value: `objects`
- texts of files: `documents`; edits of YAML that preserve unchanged parts: `splice`; output: `output`
"""
