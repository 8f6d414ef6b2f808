"""Counting in bounded memory, with bounds that hold: Count-Min, the head beside it, and buckets made of both."""
