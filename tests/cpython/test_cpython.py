"""CPython's own tests with every frame captured: some modules; the rest by the benchmark."""

import argparse

import cpython_suite
import pytest

MODULES = (
    "test_scope",
    "test_keywordonlyarg",
    "test_dictcomps",
    "test_with",
    "test_named_expressions",
)
OPTIONS = argparse.Namespace(test="", limit=60.0)


@pytest.mark.slow
@pytest.mark.parametrize("module", MODULES)
def test_verdicts_are_those_without_capture(module: str) -> None:
    options = argparse.Namespace(**vars(OPTIONS), hook=["pep523"])
    for result in cpython_suite.measure(module, options):
        assert result.tests
        assert not result.differing
        assert not result.internal
        assert result.share > 80
