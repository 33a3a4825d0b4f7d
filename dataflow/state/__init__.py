"""What a running graph holds: arrangements by key, their size, and which keys leave."""
