"""The demo: a real control plane and real decisions, with simulated engines.

`python -m hack.demo` starts a control plane, installs Stowplan on it, applies the manifests under
`manifests/samples/demo` with plain kubectl, and replays an hour of real requests in minutes. It ends with a
summary, and succeeds only if everything that it promises was observed.

- the story, its nodes and its load: `scenario`; playing it: `director`, `performance`
- engines instead of containers: `engines`, `profiles`; their load: `traffic`, `phases`, `clock`, `figures`
- the chapter of a Model: `model_story`; other API paths of its engines: `openai_api`; adapters: `loaders`
- observations: `observe` (pure), `observation`, `history`
- results of requests: `service`; results of plain autoscalers for comparison: `comparison`
- checks: `checks`, `following`, `giving_way`; final output: `summary`, `footprint`
- display: `screen`, `live`, `plain`, `frame`
- restart of processes that end: `supervisor`
- the whole story without a cluster, in seconds: `rehearsal`
- conversion of published traces: `compact_trace`
"""
