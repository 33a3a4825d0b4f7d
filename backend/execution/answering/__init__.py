"""How a query is answered: from shared memory, a view, or evaluated; and what follows its rows."""
