"""What server and player share: checks of Host and Origin headers, and a guarded socket for WebSockets."""
