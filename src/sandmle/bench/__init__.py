"""Benchmarks of others and a suite of real tables: boards, medals, ranks, and runs over them."""
