"""Epochs: how transactions of all shards become one sequence of durable commits."""
