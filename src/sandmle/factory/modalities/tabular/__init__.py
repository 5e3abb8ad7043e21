"""What is particular to tables: mutations, the ladder, leak probes."""
