"""Functions that libtorch already has as vector code: SLEEF, to 1 ULP, as eager computes them.

The compiler is told that the C library's function has vector versions; those are ours, under the
names of the vector function ABI, and call SLEEF's.
"""

from __future__ import annotations

_ACCURACY = {"hypot": "u05", "erfc": "u15", **dict.fromkeys(
    "sin cos tan asin acos atan sinh cosh tanh asinh acosh atanh exp exp2 expm1 log log2 log10"
    " log1p erf lgamma pow atan2".split(), "u10"
)}  # fmt: skip
_BINARY = frozenset({"pow", "atan2", "hypot"})
_TYPES = {"f32": ("float", "f", 4), "f64": ("double", "d", 8)}
# Bytes of a vector, the letter of its instruction set in the vector function ABI, what C calls the
# set, and how wide a vector of SLEEF's computes it: libtorch has none of 16 bytes on x86.
_VECTORS = (
    (64, "e", "__AVX512F__", 64), (32, "d", "__AVX2__", 32), (16, "b", "__AVX2__", 32),
    (16, "n", "__ARM_NEON", 16),
)  # fmt: skip
_ANY = " || ".join(f"defined({macro})" for macro in dict.fromkeys(v[2] for v in _VECTORS))


def sleef(name: str) -> str | None:
    """The C text that defines ``sin_f32`` and the like; None for what SLEEF does not have."""
    stem, _, suffix = name.rpartition("_")
    if stem not in _ACCURACY or suffix not in _TYPES:
        return None
    scalar, letter, size = _TYPES[suffix]
    libm = stem + ("f" if suffix == "f32" else "")
    names = "xy"[: 2 if stem in _BINARY else 1]
    blocks = []
    for width, isa, macro, computed in _VECTORS:
        own = f"_ZGV{isa}N{width // size}{'v' * len(names)}_{libm}"
        lanes = computed // size
        target = f"Sleef_{stem}{letter}{lanes}_{_ACCURACY[stem]}"
        blocks.append(_vector(own, target, scalar, (width // size, lanes), names, macro))
    params = ", ".join(f"{scalar} {n}" for n in names)
    head = f'#if {_ANY}\n__attribute__((simd("notinbranch"), const))\n#endif\n'
    head += f"{scalar} {libm}({params});"
    body = f"static inline {scalar} {name}({params}) {{ return {libm}({', '.join(names)}); }}"
    return "\n".join([*blocks, head, body])


def _vector(
    own: str, target: str, scalar: str, lanes: tuple[int, int], names: str, macro: str
) -> str:
    """One vector version: SLEEF's function, on lanes repeated where its vectors are longer."""
    narrow, wide = (f"{scalar}x{n}" for n in lanes)
    types = "\n".join(
        f"typedef {scalar} {scalar}x{n} __attribute__((vector_size({n} * sizeof({scalar}))));"
        for n in dict.fromkeys(lanes)
    )
    args = ", ".join(names)
    call = f"{target}({args})"
    if narrow != wide:
        repeated = ", ".join(str(n % lanes[0]) for n in range(lanes[1]))
        first = ", ".join(map(str, range(lanes[0])))
        spread = ", ".join(f"__builtin_shufflevector({n}, {n}, {repeated})" for n in names)
        call = f"{target}({spread})"
        call = f"__builtin_shufflevector({call}, ({wide}){{0}}, {first})"
    params = ", ".join(f"{narrow} {n}" for n in names)
    return "\n".join([
        f"#ifdef {macro}",
        types,
        f"{wide} {target}({', '.join([wide] * len(names))});",
        f'__attribute__((visibility("hidden"))) {narrow} {own}({params}) {{ return {call}; }}',
        "#endif",
    ])  # fmt: skip
