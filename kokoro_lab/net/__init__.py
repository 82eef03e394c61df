"""What the server and the player share of their sockets: whose pages may call, and who has left."""
