"""Times of launches: profiles, estimates, reports of configurations."""
