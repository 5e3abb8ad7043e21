"""What a program can import where it runs: the packages that this environment really has."""

import platform
from functools import cache
from importlib.metadata import PackageNotFoundError, version

_TOLD = (
    "numpy", "pandas", "scikit-learn", "scipy", "pillow", "lightgbm", "xgboost", "catboost",
    "statsmodels", "networkx", "opencv-python-headless", "torch", "transformers",
)  # fmt: skip


@cache
def installed() -> dict[str, str]:
    """Return Python and the packages for data and models that are there, with their versions."""
    found = {"python": platform.python_version()}
    for name in _TOLD:
        try:
            found[name] = version(name)
        except PackageNotFoundError:
            continue
    return found
