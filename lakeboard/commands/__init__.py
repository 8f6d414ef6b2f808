"""One module per command; the command line loads only the one that is asked for."""
