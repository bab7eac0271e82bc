"""dynacap: see README.md."""
