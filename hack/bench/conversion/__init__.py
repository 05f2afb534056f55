"""`make bench-conversion`: the cost of conversion, compared with a straightforward server for the same task.

The straightforward server is a typical first implementation: `json`, and hand-written conversion of dicts,
which keeps fields that the other version lacks in an annotation. Both convert reviews of the same objects in
process, from bytes to bytes, in interleaved rounds. A real API server then shows the effect on its users: the
time until it serves reads after a restart, compared with a converter that only changes `apiVersion`.

- reviews: `cases`; the handlers to compare with: `straightforward`; on a control plane: `restarts`
"""
