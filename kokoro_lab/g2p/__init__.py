"""From sentences to phonemes: by misaki, else by eSpeak, else by the names of letters; nothing is skipped."""
