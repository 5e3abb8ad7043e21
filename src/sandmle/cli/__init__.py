"""The command line: one file a verb, each thin; the work is done by the package."""
