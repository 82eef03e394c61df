"""A request for speech: its body, account and slot, its order among others, and its stream's events."""
