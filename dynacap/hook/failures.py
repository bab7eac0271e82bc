"""What becomes of an exception that a callback raises."""

from types import FunctionType

from dynacap import log
from dynacap.config import config


def report_failure(error: Exception, function: FunctionType) -> None:
    """Warn once for each code object; raise instead where internal errors are to be seen."""
    if config.raise_internal_errors:
        raise error
    code = function.__code__
    log.warn_once(
        ("hook", code.co_filename, code.co_firstlineno, code.co_name),
        f"{function.__qualname__} ({code.co_filename}:{code.co_firstlineno}) runs as plain "
        f"Python: the frame hook's callback raised {type(error).__name__}: {error}. "
        "This is a fault in dynacap, please report it.",
        function=function.__qualname__,
        error=repr(error),
    )
