"""From the text of PTX to a module of functions and instructions."""
