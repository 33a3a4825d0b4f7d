"""The maintained views of a worker, and how their keys are filled, read, limited and let go."""
