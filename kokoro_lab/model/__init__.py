"""The acoustic model: token ids and a style become prosody, and prosody becomes samples, window by window."""
