"""Reading and writing Kubernetes: the only user of the client library.

Cluster         one API server: get, list, create, replace, delete, apply, patch, watch; raw JSON, our errors.
Resource        one collection of the API; constants for those that we use.
Selection       which of its objects, whole or only their metadata.
Cache           a local copy of a selection that is always current, and says how current.
EventRecorder   tells an object's owner what happened to it, once per change of meaning.
LeaderElector   lets one of several replicas act.

Importing this package is cheap; `Cluster.connect` loads the client library, in a thread.
"""
