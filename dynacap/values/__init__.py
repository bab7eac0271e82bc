"""Values during symbolic execution, and the data model over them."""
