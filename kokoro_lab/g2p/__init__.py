"""Reads sentences as phonemes: by misaki, else by eSpeak, else letter by letter. Omissions are reported."""
