"""The demo: a real control plane and real decisions, with simulated engines.

`python -m hack.demo` starts a control plane, installs Stowplan on it, applies the manifests under
`manifests/samples/demo` with plain kubectl, and replays an hour of real requests in minutes. It ends with a
summary, and succeeds only if everything that it promises was observed.

- the story, its nodes and its load: `scenario`; playing it: `director`, `performance`
- engines instead of containers: `engines`; their load: `traffic`, in `phases`
- the chapter of a Model: `model_story`; other API paths of its engines, and adapters: `openai_api`
- observations and their history: `observation`; results, also of plain autoscalers: `comparison`
- checks: `checks`; display: `shows`; final output: `summary`
- restart of processes that end: `supervisor`
- the whole story without a cluster, in seconds: `rehearsal`
- conversion of published traces: `compact_trace`
"""
