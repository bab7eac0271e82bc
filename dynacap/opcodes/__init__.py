"""Code objects as canonical instructions, and back."""
