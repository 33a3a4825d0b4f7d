"""Definition statements (DDL)."""
