"""Generated clusters, planned for and then filled by the real kube-scheduler.

Does what a plan says fits find its place? Hundreds of small clusters share one control plane, kept apart by a
label of their nodes that every pod selects. Nodes and bound pods are put into the API server, read back, and
planned from as the controller would; the pods that the plan adds are then created for the scheduler to bind.

- what a cluster looks like: `generated`; who creates its new pods in which order: `ways`
- the plan, and what follows from it: `planned`
- writing to the API server and waiting for the scheduler: `filling`; what came of it: `judged`
- `python -m hack.clusters` counts, for the profile that we ship and the default one
"""
