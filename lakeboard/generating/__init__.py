"""Made-up plays for trying things out and for measuring: the same seed, the same bytes."""
