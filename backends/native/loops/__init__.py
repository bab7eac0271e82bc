"""The loop IR: what a graph computes as loops over buffers; says nothing of C or of a device."""
