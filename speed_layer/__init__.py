"""Live counting: deduplicates, buckets and sums the plays of one partition of the log. Pure: no clock, no server."""
