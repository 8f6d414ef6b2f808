"""Windows, events, rules, order and table definitions: no I/O, standard library only."""
