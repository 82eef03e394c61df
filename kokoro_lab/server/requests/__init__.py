"""A request for speech: its body, its account, its slot, its order among others, and the events of its
stream."""
