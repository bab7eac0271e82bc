"""The frame hook: runs our code in place of a Python frame."""
