"""Rankings of players: what is ranked, in which order, and what becomes of an entry."""
