"""The two things that pyproject.toml cannot say: the list of packages, and optional C extensions.

``DYNACAP_EXTENSIONS`` chooses what happens to the C code: ``auto`` (build it; without a working
compiler install the Python twins alone), ``require`` (a failed build fails the install) or ``off``.
"""

import os
import tomllib
from pathlib import Path

from setuptools import Extension, find_packages, setup

ROOT = Path(__file__).parent
FOLDERS = tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]["setuptools"]["package-dir"]
EXTENSION_FOLDERS = {
    "dynacap.hook._chook": "dynacap/hook",
    "dynacap.guards._fastcheck": "guards",
    "dynacap.backends.native.run._crun": "backends/native/run",
}
MODES = ("auto", "require", "off")


def package_names() -> list[str]:
    """Every package under the four source folders, by its import name."""
    return [
        package
        for name, folder in FOLDERS.items()
        for package in (name, *(f"{name}.{sub}" for sub in find_packages(str(ROOT / folder))))
    ]


def extensions(mode: str) -> list[Extension]:
    """One extension for each folder that holds C files; none when they are switched off."""
    if mode not in MODES:
        raise SystemExit(f"DYNACAP_EXTENSIONS={mode!r}: expected one of {', '.join(MODES)}")
    if mode == "off":
        return []
    found = []
    for name, folder in EXTENSION_FOLDERS.items():
        sources = sorted(p.relative_to(ROOT).as_posix() for p in (ROOT / folder).glob("*.c"))
        headers = sorted(p.relative_to(ROOT).as_posix() for p in (ROOT / folder).glob("*.h"))
        if sources:
            found.append(
                Extension(
                    name,
                    sources,
                    depends=headers,
                    optional=mode != "require",
                    extra_compile_args=[
                        "-std=gnu11",
                        "-O2",
                        "-Wall",
                        "-Wextra",
                        "-Wno-unused-parameter",
                    ]
                    if os.name == "posix"
                    else [],
                )
            )
    return found


setup(
    packages=package_names(),
    ext_modules=extensions(os.environ.get("DYNACAP_EXTENSIONS", "auto")),
)
