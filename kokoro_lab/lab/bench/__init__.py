"""How fast, how steady, how much memory: measured as a listener would notice it."""
