"""The demo: a real control plane, real decisions, simulated engines.

`python -m hack.demo` brings up a control plane, installs Stowplan on it, applies the manifests under
`manifests/samples/demo` with plain kubectl, and plays an hour of real requests in minutes. It ends with a
summary of what was seen, and succeeds only if all was seen that it promises.

- the story, its nodes and its load: `scenario`; playing it: `director`, `performance`
- engines in the place of containers: `engines`, `profiles`; the load on them: `traffic`, `clock`, `figures`
- the chapter of a Model: `model_story`; its engines' other paths: `openai_api`; their adapters: `loaders`
- what can be seen: `stage` (live objects), `observe` (pure), `observation`, `history`
- what became of requests: `service`; what plain autoscalers would have made of them: `comparison`
- what must be seen: `checks`, `following`, `giving_way`; what is said in the end: `summary`, `footprint`
- watching: `screen`, `live`, `plain`, `newest`, `frame`
- processes that end come back: `supervisor`
- the whole story without a cluster, in seconds: `rehearsal`
- how the shipped traces were made: `compact_trace`
"""
