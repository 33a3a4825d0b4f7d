"""Planned statements run here, against a `backend.store.Store`."""
