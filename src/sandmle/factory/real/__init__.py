"""Tasks from real tables: split, measured models, thresholds, and the checks that bind."""
