"""What a node does besides giving a value: change its arguments, or draw random numbers.

Only names, schemas and flags are looked at, so that torch need not be loaded.  A function of which
nothing is known is taken to have effects.  Checks of data (a dead ``torch.linalg.inv`` that would
have raised for a singular matrix) are not effects here; ``torch._assert`` and its kin are.
"""

import inspect
import operator
from functools import lru_cache
from typing import Any

from dynacap.fxlite.node import Node

_COMPUTING_MODULES = frozenset(
    {
        "_operator",
        "math",
        "operator",
        "torch",
        "torch._C._fft",
        "torch._C._linalg",
        "torch._C._nested",
        "torch._C._nn",
        "torch._C._sparse",
        "torch._C._special",
        "torch._numpy",
        "torch._tensor",
        "torch.functional",
        "torch.nn.functional",
    }
)
_COMPUTING_BUILTINS = frozenset(
    """abs all any bool bytes callable chr complex dict divmod enumerate float frozenset getattr
    hasattr hash id int isinstance issubclass len list max min ord pow range repr reversed round
    set slice sorted str sum tuple type zip""".split()
)
_ARITHMETIC = "add and concat floordiv lshift matmul mod mul or pow rshift sub truediv xor".split()
_MUTATING_OPERATORS = frozenset(
    {operator.setitem, operator.delitem, *(getattr(operator, f"i{name}") for name in _ARITHMETIC)}
)
_MUTATING_METHODS = frozenset(
    """__setitem__ __delitem__ __setattr__ __delattr__ append backward clear extend insert pop
    popitem register_hook remove retain_grad reverse setdefault update""".split()
) | {f"__i{name}__" for name in _ARITHMETIC}
# These change their running statistics, or may, by an argument of their own.
_MUTATING_FUNCTIONS = frozenset(
    """batch_norm instance_norm native_batch_norm cudnn_batch_norm miopen_batch_norm
    batch_norm_update_stats batch_norm_gather_stats batch_norm_gather_stats_with_counts
    fused_moving_avg_obs_fake_quant""".split()
)
_CHANGES_PROCESS_STATE = (
    "_assert", "_check", "_set", "manual_seed", "seed", "set_", "use_", "sym_constrain"
)  # fmt: skip
_RANDOM = frozenset(
    """bernoulli binomial fractional_max_pool2d fractional_max_pool2d_with_indices
    fractional_max_pool3d fractional_max_pool3d_with_indices gru gumbel_softmax lstm
    multi_head_attention_forward multinomial normal poisson rand rand_like randint randint_like
    randn randn_like randperm rnn_relu rnn_tanh rrelu scaled_dot_product_attention
    _standard_gamma _sample_dirichlet bernoulli_ cauchy_ exponential_ geometric_ log_normal_ normal_
    random_ uniform_""".split()
)
_RANDOM_TAG = "nondeterministic_seeded"


def is_impure(node: Node) -> bool:
    """Whether someone could notice it if the node were dropped although nothing uses it."""
    if node.op in ("placeholder", "output", "call_module"):
        return True
    if node.op == "get_attr":
        return False
    return mutates(node) or is_random(node) or not _is_known(node)


def mutates(node: Node) -> bool:
    """Whether the node changes one of its arguments."""
    if node.kwargs.get("out") is not None:
        return True
    if node.op == "call_method":
        return _is_inplace_name(str(node.target)) or node.target in _MUTATING_METHODS
    if node.op != "call_function":
        return False
    schemas = _schemas(node.target)
    if schemas is not None:
        return any(schema.is_mutable for schema in schemas)
    name = _name(node.target)
    if _is_inplace_name(name):
        return True
    if name in _MUTATING_FUNCTIONS:
        return not _only_evaluates(node, name)
    if _is_one_of(node.target, _MUTATING_OPERATORS):
        return True
    return bool(_argument(node, "inplace")) or _argument(node, "max_norm") is not None


def is_random(node: Node) -> bool:
    """Whether the node draws from a random stream, so that dropping it shifts what comes later."""
    if node.op == "call_method":
        return node.target in _RANDOM
    if node.op != "call_function":
        return False
    tags = getattr(node.target, "tags", ())
    if isinstance(tags, (list, tuple)) and any(_RANDOM_TAG in str(tag) for tag in tags):
        return True
    name = _name(node.target).partition(".")[0]
    return (name in _RANDOM or "dropout" in name) and not _only_evaluates(node, name)


# name -> the position, among positional arguments, of the flag for training and of the
# probability of dropping, for functions of C; Python functions are asked by name.
_FLAGS_OF_BUILTINS: dict[str, tuple[int | None, int | None]] = {
    "batch_norm": (5, None),
    "instance_norm": (5, None),
    "dropout": (2, 1),
    "feature_dropout": (2, 1),
    "alpha_dropout": (2, 1),
    "scaled_dot_product_attention": (None, 4),
}


def _only_evaluates(node: Node, name: str) -> bool:
    """Whether the arguments say that nothing is trained or dropped in this call."""
    if inspect.isfunction(node.target):
        training = [_given(node, flag) for flag in ("training", "use_input_stats")]
        dropped = [_given(node, share) for share in ("p", "dropout_p")]
        return any(flag is False for flag in training) or any(_is_zero(p) for p in dropped)
    flag_at, share_at = _FLAGS_OF_BUILTINS.get(name, (None, None))
    if flag_at is not None and len(node.args) > flag_at and node.args[flag_at] is False:
        return True
    if share_at is None:
        return False
    share = node.kwargs.get("dropout_p", 0.0) if name.startswith("scaled") else None
    return _is_zero(node.args[share_at] if len(node.args) > share_at else share)


def _given(node: Node, name: str) -> Any:
    """The value that a parameter of a Python function has in this call, its default included."""
    if _position(node.target, name) is None:
        return None
    found = _argument(node, name)
    return _defaults(node.target).get(name) if found is None else found


def _is_zero(value: object) -> bool:
    return isinstance(value, int | float) and value == 0


@lru_cache(maxsize=512)
def _defaults(function: Any) -> dict[str, Any]:
    parameters = inspect.signature(function).parameters
    return {name: parameter.default for name, parameter in parameters.items()}


def _is_known(node: Node) -> bool:
    """Whether what the node calls is known to do nothing but compute."""
    if node.op == "call_method" or _schemas(node.target) is not None:
        return True
    name = _name(node.target)
    owner = getattr(node.target, "__objclass__", None)
    if owner is not None:  # torch.Tensor.add, called as a function
        return bool(owner.__name__ == "TensorBase")
    module = getattr(node.target, "__module__", None)
    if module == "builtins":
        return name in _COMPUTING_BUILTINS
    return module in _COMPUTING_MODULES and not name.startswith(_CHANGES_PROCESS_STATE)


def _is_inplace_name(name: str) -> bool:
    # operator.and_, or_, not_ and is_ end so only because Python's keywords do.
    return name.endswith("_") and not name.endswith("__") and name not in _KEYWORD_OPERATORS


_KEYWORD_OPERATORS = frozenset({"and_", "or_", "not_", "is_"})


def _name(target: object) -> str:
    return str(getattr(target, "__name__", ""))


def _is_one_of(target: Any, functions: frozenset[Any]) -> bool:
    try:
        return target in functions
    except TypeError:
        return False


def _schemas(target: Any) -> list[Any] | None:
    """The schemas of a ``torch.ops`` operator: one, or those of its overloads but ``out``."""
    schema = getattr(target, "_schema", None)
    if schema is not None and hasattr(schema, "is_mutable"):
        return [schema]
    if not (hasattr(target, "overloads") and hasattr(target, "op")):
        return None
    overloads = [name for name in target.overloads() if not name.endswith("out")]
    return [getattr(target, name)._schema for name in overloads]


def _argument(node: Node, name: str) -> Any:
    """The value given for a parameter of that name, by keyword or by position."""
    if name in node.kwargs:
        return node.kwargs[name]
    position = _position(node.target, name)
    if position is None or position >= len(node.args):
        return None
    return node.args[position]


def _position(target: Any, name: str) -> int | None:
    return _parameters(target).get(name) if inspect.isfunction(target) else None


@lru_cache(maxsize=512)
def _parameters(function: Any) -> dict[str, int]:
    return {name: index for index, name in enumerate(inspect.signature(function).parameters)}
