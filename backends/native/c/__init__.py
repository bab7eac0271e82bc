"""From the loop IR to C source."""
