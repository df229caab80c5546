"""Cases whose results on an H200 are kept, and what runs them: on the PTX machine, and on a GPU."""
