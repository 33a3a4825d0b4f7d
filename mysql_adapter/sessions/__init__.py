"""What one client's session is and knows."""
