"""Rollouts: many episodes, side by side, written down so that they can go on after a crash."""
