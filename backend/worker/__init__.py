"""A worker: one shard's stored state, its epochs, locks and statements."""
