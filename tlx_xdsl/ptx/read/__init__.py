"""Reader of PTX: text becomes a module of functions and instructions."""
