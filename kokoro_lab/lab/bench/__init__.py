"""Benchmarks of speed, steadiness and memory, measured as a listener notices them.

texts, plan, timing, trial, report                every text by every system, and what a listener noticed
peers, reference, fresh_process, front_end        what it is timed beside; a process's first sound; text alone
profile, profile_verdict                          where the time goes, by stage and by operator
chunking, playing                                 pre-buffers tried on recorded streams; the player itself
own_server, client, received, compared            our server, who asks it, what they hear; two compared
persistent, faulty, misbehaving                   listeners who come back; speakers, and clients, with faults
resuming, lifecycle, verdicts                     streams that break, a server that ends
loading, load_verdict                             more and more listeners: up to how many are served in time
live                                              answers of a model, spoken while it writes them
soak, soak_verdict, soak_controls, drift, memory  listeners for many minutes: do times or memory grow?
"""
