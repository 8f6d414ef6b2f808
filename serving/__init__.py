"""The HTTP API: bodies in, the log or ready answers behind it."""
