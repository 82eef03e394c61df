"""From what a user typed to sentences and segments that can be spoken, offsets kept throughout."""
