"""NumPy on tensors: torch's NumPy layer, held to what NumPy itself gives.

``operations`` has the functions by name, ``nodes`` makes callables of them that take and give
tensors and can stand in a graph, ``fit`` decides whether a call may be made so and how, ``table``
says which of NumPy's functions is which operation, ``memory`` goes between arrays and tensors.
"""
