"""The native backend: a graph becomes one C function of fused loops and calls of ATen operators."""
