"""From the text that a user typed to sentences and segments that can be spoken, with offsets throughout."""
