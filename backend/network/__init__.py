"""What processes say to each other: messages over authenticated connections."""
