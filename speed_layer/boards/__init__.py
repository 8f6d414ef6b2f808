"""Live boards: one consumer decides what scores do, the store moves entries, readers merge base and overlay."""
