"""Steps of a release: the metadata of its packages, their checks, and the tag (`make release`)."""
