"""Benchmarks of speed, steadiness and memory, measured as a listener notices them.

plan, texts, timing, trial, report                a benchmark of speech: its options, texts, clock, figures
peers, reference                                  compared with our engine: other programs, a plain inference
fresh_process, front_end                          a new process up to its first sound; text without the model
profile, profile_verdict                          where the time goes, by stage and by operator
chunking, playing                                 pre-buffers tried on recorded streams; the playback daemon
own_server, client, received, compared            our server, its client, what a client received, compared
persistent, faulty, misbehaving                   listeners who resume; speakers, and clients, with faults
verdicts, resuming, lifecycle                     server benchmarks: streams that break, a server that ends
loading, load_verdict                             more and more listeners: up to how many are served in time
live                                              answers of a model, spoken while it writes them
soak, soak_verdict, soak_controls, drift, memory  listeners for many minutes: do times or memory grow?
"""
