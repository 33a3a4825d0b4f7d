"""The page and the example site in a real browser: part of `make test-clients`."""
