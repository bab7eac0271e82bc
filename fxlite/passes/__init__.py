"""Graph passes: a valid graph in, a valid graph out."""
