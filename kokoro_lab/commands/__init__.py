"""The commands, each in the module of its name: its arguments, its work and what it prints."""
