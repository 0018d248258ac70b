"""Topics of a memory: groups of turns that several perspectives agree on, and their uses."""
