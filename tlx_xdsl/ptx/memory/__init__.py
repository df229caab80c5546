"""Memory of the PTX machine by state space, and its barriers."""
