"""Operators of torch's own list, with its samples, through the native backend, against eager.

A few of each kind, two samples each; `make opinfo` runs all.
"""

import pytest

pytestmark = [pytest.mark.torch, pytest.mark.cc, pytest.mark.slow]
pytest.importorskip("expecttest")

from operators import judge, operators  # noqa: E402

NAMES = """add clamp pow where nn.functional.gelu nn.functional.silu sum mean amax argmax var
    softmax logsumexp nn.functional.layer_norm nn.functional.batch_norm
    nn.functional.cross_entropy cat narrow_copy index_select gather index_put index_fill
    nn.functional.pad:constant matmul nn.functional.linear nn.functional.conv2d
    nn.functional.dropout randint complex fft.fft linalg.cholesky linalg.ldl_factor
    linalg.householder_product cumsum sort""".split()


@pytest.mark.parametrize("name", NAMES)
def test_operator(name: str) -> None:
    verdict = judge(name, operators()[name], "native", 2)
    assert verdict.samples
    assert verdict.problems == []
