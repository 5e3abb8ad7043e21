"""Control flow over a workbench and a language model; ReAct is the one that is trained."""
