"""The four roles of the paper: language models that write tasks, and what checks their work."""
