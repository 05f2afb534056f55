"""Generated clusters that are planned for and then filled by the real kube-scheduler.

They test whether the scheduler places all pods that a plan has room for. Hundreds of small clusters share one
control plane, separated by a node label that every pod selects. Nodes and bound pods are written to the API
server, read back, and planned from as the controller would. The pods that the plan adds are then created.

- generation of clusters: `generated`; the plan, its consequences, and evaluation: `planned`
- the control plane, writing to it and waiting for the scheduler: `filling`
- `python -m hack.clusters` counts the pods that wait, for the shipped scheduler profile and the default one
"""
