"""Real MySQL drivers against a server on loopback."""
