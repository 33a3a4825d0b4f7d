"""The cluster as those who ask it see it: stores, misses and writes on their way."""
