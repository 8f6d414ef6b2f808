"""Boards over HTTP: scores in, ranks out."""
