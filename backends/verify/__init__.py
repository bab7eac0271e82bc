"""A backend held to eager: the first calls of each graph run on both, and are compared.

A mismatch raises, or is healed by going on in eager; either way a small program that shows it is
written to a file.  Loads without torch, as the registry does that asks here.
"""

from dynacap.backends.verify.request import Verification, verification

__all__ = ["Verification", "verification"]
