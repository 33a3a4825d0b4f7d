"""One client's session: its settings, variables, statements and limits."""
