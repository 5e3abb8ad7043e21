"""Reports: read run and task folders, run nothing."""
