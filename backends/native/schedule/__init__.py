"""From equations, one a tensor, to few loop nests: what is fused, in what order and memory."""
