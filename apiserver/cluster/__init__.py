"""Kubernetes API access: the only package that uses the client library.

Cluster         a connection to one API server: get, list, create, replace, delete, apply, patch, watch;
                raw JSON, with errors of our own
Resource        a resource type of the API, with constants for those in use
Selection       a subset of the objects of a resource, whole or only their metadata
Cache           a local copy of a selection that a watch keeps current, with its age
EventRecorder   records events about an object, one per change of meaning
LeaderElector   leader election among several replicas

Importing this package is cheap; `Cluster.connect` loads the client library, in a thread.

- connections: `client`, over `transport`, with `credentials`; the client library without generated code:
  `slim_import`
- names of resources and of what is read of them: `resource`, `selection`; errors: `errors`; times:
  `timestamps`
- watches: `watch`, from the bytes of `watch_stream`; local copies: `cache`, `optional_cache` for objects that
  may be unreadable, and `grouped` by what objects belong to
- leader election: `lease`, with annotations on the same Lease: `lease_annotation`; the `heartbeat` on it, and
  which `decisions` it counts
- statuses with their conditions: `status_writer`
- events: `events`, aggregated by `event_series`; permissions of users: `access`; retries: `backoff`
- namespaces: `namespaces` if none is given, and `installed` for that of Stowplan
"""
