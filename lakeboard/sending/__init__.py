"""The client of the HTTP API behind `lakeboard send`: reads files as an import does, and posts what it would commit."""
