"""From what capture found to a Python function: the graph's call, the effects, the result."""

from dynacap.codegen.emit import Emitter
from dynacap.codegen.entry import EntryCode, GraphCall, generate_entry

__all__ = ["Emitter", "EntryCode", "GraphCall", "generate_entry"]
