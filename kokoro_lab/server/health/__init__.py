"""The server's state: loading and stopping, figures, degrade modes, memory limit, and log."""
