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
- names of resources and of what is read of them: `resource`; errors: `errors`; retries and times: `timing`
- local copies: `cache`, and `optional_cache` for objects that may be unreadable
- leader election: `lease`; the `heartbeat` on the same Lease, and which decisions it counts
- statuses with their conditions: `status_writer`
- events: `events`; permissions of users: `access`; `namespaces` if none is given
"""
