"""How requests come and answers go: connections, who may ask, one way in for each transport, the page."""
