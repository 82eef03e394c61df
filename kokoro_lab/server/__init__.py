"""The HTTP side: what clients may ask, who may ask it, and how the answer travels.

http: worker → guard → speech → delivery, or websocket      errors: one shape for all
requests: speech_request → syntheses (slots) → speech_events      resume: one that broke goes on
    account: one request's books
health: figures → objectives → degrade; status and operations show them      watchdog: memory
    lifecycle: the first moments of a process and its last      background: what waits until nobody is served
wyoming: worker → conversation: the same for Home Assistant, by events over TCP
openapi: what may be asked and answered, as models, and the document made from them
"""
