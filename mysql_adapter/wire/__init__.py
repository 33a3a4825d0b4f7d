"""The wire protocol: packets, rows as bytes, compression and TLS."""
