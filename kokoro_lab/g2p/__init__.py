"""From sentences to phonemes: misaki first, then eSpeak, then characters; nothing lost in silence."""
