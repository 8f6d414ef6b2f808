"""Benchmarks: one script a question of `make bench`. They print tables and assert results, never a time."""
