"""Turns an utterance into chunks of samples: the engine, the stream, and the steps of a stream."""
