"""How a release is made: the metadata of its packages, their checks, and the tag (`make release`)."""
