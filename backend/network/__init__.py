"""Messages between the processes, over authenticated connections."""
