"""Where agent code runs: one protocol, several ways to confine."""
