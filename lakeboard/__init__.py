"""The front door: command line, settings and the bundled sample; nothing that counts."""
