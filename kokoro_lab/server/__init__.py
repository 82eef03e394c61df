"""The HTTP side: what clients may ask, who may ask it, and how the answer travels.

worker → guard → speech_request → syntheses (slots) → speech → delivery      errors: one shape for all
speech_events: what a stream says → delivery, or over a websocket: conversation; resume: to go on with it
account: one request's books → figures, objectives → degrade, logs
status, operations, benchmarks: what runs, how fast, what there is to choose from; openapi describes all
background: what waits until nobody is served      lifecycle: the first moments of a process and its last
front_page: the files of `page/`, at `/`
"""
