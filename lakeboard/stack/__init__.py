"""The embedded stack: which processes there are, how each is started, and who watches them."""
