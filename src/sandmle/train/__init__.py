"""Training: the algorithms are the engines'; ours is what they are fed."""
