"""The server as a service of its user: started with the session, and again when it fails.

supervisor: what a service is, and what is common to those that run one      systemd      launchd
"""
