"""Spark entry points: read, call pipelines, prove, write, report."""
