"""Statements that a session answers itself: SET, SHOW, USE, transactions, administration."""
