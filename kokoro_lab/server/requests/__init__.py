"""A request for speech: what it asks, its books, its slot, its place among others, its stream's events."""
