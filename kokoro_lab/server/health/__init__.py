"""How the server is: from loading to its end, its figures, what it does when it cannot keep up, its log."""
