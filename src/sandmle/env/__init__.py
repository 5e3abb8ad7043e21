"""Episodes: a workbench for any scaffold, and the ReAct environment that trainers drive."""
