"""One file per CPython: how its bytecode maps to canonical instructions."""
