"""Generated entry code: what calls the graph and replays the side effects."""
