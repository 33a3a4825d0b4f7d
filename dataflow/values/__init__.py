"""The values of MySQL: their types, how they compare, convert, are stored and shown."""
