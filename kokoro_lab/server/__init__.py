"""The server: HTTP and Wyoming requests, who may make them, how they are computed, and how answers are sent.

http: worker → guard → speech → delivery, or websocket      errors: one shape for all
requests: speech_request → syntheses (slots) → opening → speech_events      resume: a stream that broke
    account: a request's record
health: figures → objectives → degrade; status and operations show them      watchdog: memory
    lifecycle: the first moments of a process and its last      background: what waits until nobody is served
wyoming: worker → conversation: the same for Home Assistant, by events over TCP
openapi: what may be asked and answered, as models, and the document made from them
"""
