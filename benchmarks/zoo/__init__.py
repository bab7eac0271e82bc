"""Small models of many kinds, with random weights: one list for the tests and the benchmarks."""

from zoo import plain, text, vision_audio
from zoo.entry import Built, Entry, by_name

ZOO = by_name([text.ENTRIES, vision_audio.ENTRIES, plain.ENTRIES])

__all__ = ["ZOO", "Built", "Entry"]
