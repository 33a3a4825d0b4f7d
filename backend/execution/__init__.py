"""Planned statements run here, against a `backend.clustering.store.Store`."""
