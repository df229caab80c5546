"""What NVIDIA hardware asks for: the life of barriers."""
