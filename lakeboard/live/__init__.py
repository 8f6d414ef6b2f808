"""How the speed layer is run: what stands between the log's entries and the plays it counts."""
