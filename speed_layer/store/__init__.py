"""The keys of the views server that live charts are made of: the only place that reads and writes them."""
