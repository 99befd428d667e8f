"""Who may do what: sealed job files, the cluster's secrets, and paths that jobs may name."""
