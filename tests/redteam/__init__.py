"""A red team for the sandboxes: hostile programs, and what must hold against them."""
