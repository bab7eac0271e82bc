"""Threads that call compiled functions while another changes what they are guarded by."""

from soak_threads import soak


def test_a_short_soak() -> None:
    found = soak(threads=8, seconds=4)
    assert not found.problems
    assert found.calls > 100
    assert found.changes > 0
