"""Boards in the views server: keys, scripts, the one writer of a shard, and readers."""
