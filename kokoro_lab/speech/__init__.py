"""From an utterance to chunks: the engine, the stream and what each of its steps needs."""
