"""Getting events in and rows out without a JVM: importers, the lake writer, the lake reader."""
