"""Networks: what families draw them with, and what mutations do to their edges."""
