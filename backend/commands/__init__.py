"""Commands of `millrace` that talk to a running cluster."""
