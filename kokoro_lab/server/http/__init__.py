"""HTTP and WebSocket: connections, access checks, a module for each transport, and the page."""
