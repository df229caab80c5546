"""The pages of the documentation, and in `site` what makes the rest of the site."""
