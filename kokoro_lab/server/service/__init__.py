"""The server as a user's service of systemd or launchd: started at login, and again when it fails.

supervisor: a service, and what both supervisors share      systemd      launchd
"""
