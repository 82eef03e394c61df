"""The HTTP side: what clients may ask, who may ask it, and how the answer travels.

worker → guard → speech_request → slots → speech → delivery        errors: one shape for all of them
account: one request's books → figures, meters, objectives → degrade, logs
status, operations, benchmarks: what runs, how fast, what there is to choose from; openapi describes all
"""
