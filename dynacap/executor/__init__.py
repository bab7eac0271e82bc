"""Symbolic execution of a frame."""
