"""`stowplan simulate`: simulate what policies would have done with given settings and requests.

`declared` is the scenario file; `scenario_file` and `exported` build scenarios from it and from a live
cluster's objects, `traced` from requests and policies; `text` shows the `results`; `run` is the command.
`replay` decides on recorded metrics instead.

- input: `given`, from `arguments`, `traces`, `profiles`, `policy_file`, `metric_trace`
- replays: `replay_run`, `replay_text`
- pages: `page`, with `charts` and `decided_charts`, made of `chart` and `scale`; decisions as text:
  `decided_text`; numbers: `wording`
"""
