"""What is particular to histories of daily quantities, and plans for the days to come."""
