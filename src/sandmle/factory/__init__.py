"""The factory: families of hidden rules, stories, thresholds, and the gate every task passes."""
