"""The HTTP side: what clients may ask, who may ask it, and how the answer travels.

guard → speech_request → speech → delivery        errors: one shape for all of them
status: what runs, how fast, and what there is to choose from
front_page: the files of `page/`, at `/`
"""
