"""The state of a running graph: arrangements by key, their size, and eviction."""
