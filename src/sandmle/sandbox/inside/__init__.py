"""What runs on the other side: imported by the sandbox's own processes, standard library only.

`supervise` enters the namespaces; `keeper` holds the workspaces and forks workers; a `worker` forks
one execution after the other; each execution is an `init` and, below it, the `program`.
"""
