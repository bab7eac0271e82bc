"""Why capture stops: each reason with an explanation and what the user can do about it.

A reason is named by a short stable slug, which counters, logs and ``explain`` show.  A place that
breaks adds the detail of what was met there.
"""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class BreakReason:
    """One reason: what it means, and what to do."""

    slug: str
    explanation: str
    hint: str


_OUTSIDE = "do it before or after the call of the compiled function"
RUNNING_FRAME = "running-frame"
WARNS_CALLER = "warning-of-caller"
_REPORT = "nothing is wrong with the result; please report the program that shows it"


def _reasons(*rows: tuple[str, str, str]) -> dict[str, BreakReason]:
    found: dict[str, BreakReason] = {}
    for slug, explanation, hint in rows:
        if slug in found:
            raise ValueError(f"the break reason {slug} is there twice")
        found[slug] = BreakReason(slug, explanation, hint)
    return found


_TENSORS = _reasons(
    (
        "data-dependent-branch",
        "Python chooses what to do by the elements of a tensor, which are not known to capture.",
        "use torch.where or torch.cond, or read the value outside the compiled function;"
        " torch._check says what always holds",
    ),
    (
        "data-dependent-value",
        "A Python number is made from the elements of a tensor.",
        "keep the value in a tensor (torch.where, torch.clamp, masks), or read it outside the"
        " compiled function; with config.capture_scalar_outputs, one that only goes into operations"
        " stays in the graph",
    ),
    (
        "data-dependent-shape",
        "The shape of a result hangs on the elements of a tensor.",
        "use an operation whose result has the same shape for all data (torch.where, masked_fill,"
        " topk), or set config.capture_dynamic_output_shape_ops; torch._check says what is known of"
        " a size",
    ),
    (
        "fake-tensor-error",
        "The operation fails on tensors of these shapes and types.",
        "the same call most likely fails in eager mode too; it is run there now",
    ),
    (
        "no-fake-kernel",
        "The operation does not say what its result looks like.",
        "register a fake implementation with torch.library.register_fake",
    ),
    (
        "autograd-call",
        "Gradients are computed inside the function.",
        "call it outside the compiled function; compile the forward pass",
    ),
    (
        "autograd-function",
        "A torch.autograd.Function has a backward pass of its own.",
        "have forward take tensors and constants, return tensors, and change nothing else, or"
        " register it as a custom operator with torch.library.custom_op",
    ),
    (
        "function-transform",
        "A transform such as vmap or grad is applied inside the function.",
        "apply it outside the compiled function",
    ),
    ("inference-mode", "Inference mode is entered or left in a way that a graph cannot hold.",
     "enter it around the call of the compiled function"),
    ("numpy-interop", "NumPy meets a tensor, or torch an array, in a way that no graph can hold.",
     "convert with tensor.numpy() and torch.from_numpy()"),
    ("numpy-argument", "A NumPy function is called with an object that no graph can hold.",
     "pass arrays, numbers, dtypes and lists or tuples of them"),
    ("numpy-array", "The array is of a kind that torch has no tensor for.",
     "pass plain arrays of numbers, without negative strides"),
    ("numpy-differs", "torch's NumPy layer would give another result than NumPy.",
     "do it in torch, or outside the compiled function"),
    ("numpy-error", "NumPy refuses the call, or warns.",
     "the same call fails in eager mode: correct its arguments"),
    ("numpy-function", "torch's NumPy layer lacks the function, or this way of calling it.",
     "do it in torch, or outside the compiled function"),
    ("numpy-random", "NumPy's random numbers are drawn.", "draw them outside and pass them in"),
    ("numpy-view", "NumPy gives a view of memory that no tensor can be.",
     "make a copy where the view is not needed"),
    ("random-generator", "A random generator object is used.",
     "use the default generator, or pass random tensors in"),
    ("random-state", "The state of torch's random generators is read or set.",
     "seed outside the compiled function"),
    ("tensor-argument", "A tensor operation is called with an object that no graph can hold.",
     "pass tensors, numbers, text, dtypes, devices and containers of them"),
    ("tensor-field", "A field of a tensor is read that capture does not know.", _OUTSIDE),
    ("tensor-field-write", "A field of a tensor is set.", "set it outside the compiled function"),
    ("tensor-hook", "A hook is put on a tensor.",
     "register the hook outside the compiled function"),
    ("tensor-layout", "The tensor is sparse, quantized or of another layout without a kernel here.",
     "pass dense tensors"),
    ("tensor-print", "The text of a tensor is made.",
     "print outside the compiled function, or print the shape only"),
    ("overlap", "Arguments that share memory are changed: what comes of it hangs on how they do.",
     "pass tensors with memory of their own, such as clones"),
    ("tensor-storage", "The memory below a tensor is reached for.",
     "work on the tensor's elements, not on its memory"),
    ("tensor-subclass", "The tensor is of a subclass with behaviour of its own.",
     "pass a plain torch.Tensor"),
    ("torch-global-state", "A setting of torch for the whole process is changed.",
     "set it outside the compiled function"),
    ("torch-io", "A file is read or written.", _OUTSIDE),
    ("torch-mode", "A mode that intercepts torch's functions is active.",
     "leave the mode before the compiled function is called"),
)  # fmt: skip

_EFFECTS = _reasons(
    ("print", "Something is printed.", "print outside, or remove the print; logs can wait too"),
    ("input-output", "Input is awaited or a file is opened.", _OUTSIDE),
    ("clock", "The clock is read or awaited.", "take times around the compiled function"),
    ("random", "Python's random numbers are drawn.", "draw them outside and pass them in"),
    ("warning", "A warning is given.", "warn outside the compiled function"),
    (WARNS_CALLER, "A warning is given that points at a caller.",
     "warn outside the compiled function"),
    ("system", "The operating system is asked.", _OUTSIDE),
    ("garbage-collector", "The garbage collector is steered.", _OUTSIDE),
    ("finalizer", "An object with a __del__ is made: when it dies can be seen.",
     "make it outside the compiled function"),
    ("weak-reference", "A weak reference is made or followed.",
     "hold the object itself inside the compiled function"),
    ("symbol", "What was asked about a symbolic size cannot be said of the inputs.",
     "Mark the size static with dynacap.mark_static, or compile with dynamic=False."),
    ("dynamic-code", "Code is made from text while the function runs.",
     "make the function once, outside"),
    ("frame-introspection", "The running frame is looked at.",
     "pass what is needed as an argument"),
    (RUNNING_FRAME,
     "The running frame or its callers are looked at: they run on as plain Python.",
     "pass what is needed as an argument"),
    ("signature", "A function's signature or source is asked for.",
     "work it out once, outside the compiled function"),
    ("traceback", "A traceback is looked into, or its text is made.",
     "do it where the exception is reported"),
    ("profiler", "A profiler's label ends that began before.",
     "keep graph breaks out of the block of record_function"),
    ("import", "A module is imported for the first time.", "import it at the top of the file"),
    ("lru-cache", "The function keeps its results in a cache, whose hits and effects must stay.",
     "call the function that is wrapped, or cache outside the compiled function"),
    ("side-effect", "An object from outside was changed in a way that cannot be replayed.",
     _REPORT),
    ("class-attribute-write", "An attribute of a class is set or deleted.",
     "keep what changes on an instance"),
    ("function-write", "A field of a function from outside is set.",
     "decorate functions outside the compiled function"),
    ("exception-write", "A field of an exception from outside is set.",
     "raise a new exception instead"),
)  # fmt: skip

_LANGUAGE = _reasons(
    ("explicit-break", "graph_break() was called.", "remove the call when it is not needed"),
    ("skip-frame", "skip_frame() was called.", "remove the call when it is not needed"),
    ("disabled", "The function is marked so that it is never captured.",
     "remove the mark, or call the function outside the compiled one"),
    ("unsupported-call", "A function written in C is called that capture does not know.",
     "call it outside, or mark it with dynacap.allow_in_graph if it only computes on tensors"),
    ("unsupported-field", "A field of a C-level object is reached that capture does not know.",
     _OUTSIDE),
    ("bad-arguments", "A function of the library is called with arguments that it refuses.",
     "the same call fails in eager mode: correct its arguments"),
    ("not-constant", "A value has to be known while capturing, and is not.",
     "pass a constant, or keep this outside the compiled function"),
    ("foreign-storage", "A C-level method is called on an object of another layout.", _REPORT),
    ("address", "The address of an object shows, which is another for each object.",
     "compare with 'is', or give the class a __repr__"),
    ("user-hash", "A dict or set asks an object for a hash of its own.",
     "use constants or plain objects as keys"),
    ("set-order", "The order of a set's elements hangs on their addresses.",
     "use a list or a dict where the order shows"),
    ("outside-set", "A set from outside holds more than constants, classes and functions.",
     "pass a list, a tuple or a dict"),
    ("outside-iterator", "An iterator that was made elsewhere is advanced.",
     "pass what it iterates over, and iterate inside"),
    ("outside-generator", "A generator that was made elsewhere goes on.",
     "make the generator inside the compiled function"),
    ("generator-throw", "An exception is thrown into an iterator that is no generator.",
     "throw into a generator"),
    ("generator-frame", "The frame of a suspended generator is looked at.", _REPORT),
    ("class-creation", "A class is made while the function runs.",
     "define the class outside the compiled function"),
    ("type-parameters", "Type parameters or a type alias are made, or worked out.",
     "write them outside the compiled function"),
    ("class-dict", "The dict of a class is read.", "use getattr on the class"),
    ("class-item", "A class is subscripted with what is no constant.", _OUTSIDE),
    ("metaclass-call", "A class is called whose metaclass is written in C.", _OUTSIDE),
    ("copy-of-subclass", "A container of a subclass is copied.", "copy it element by element"),
    ("own-copy", "An object is copied by means of its own.", "copy it outside"),
    ("super", "super() is used where its class or object are not known.",
     "name both: super(Class, self)"),
    ("match", "A pattern asks a class for more than capture knows.", "use isinstance"),
    ("function-closure", "The closure of a function from outside is read.", _OUTSIDE),
    ("unset-slot", "A slot is read that is not set.", "set it in __init__"),
    ("empty-cell", "A closure variable is read that is not set.",
     "set the variable before the function is called"),
    ("async", "A coroutine or an async generator runs.", "compile what it awaits"),
    ("interactive", "A statement of the interactive prompt runs.", "put it into a function"),
    ("recursion", "Calls are nested too deep.", "use a loop"),
    ("long-loop", "A loop goes on and on without any operation on tensors.",
     "run it outside the compiled function"),
    ("nesting", "Operators or iterators call each other too deep.", "use a loop"),
    ("cannot-rebuild", "An object that was made inside cannot be made again by generated code.",
     _REPORT),
    ("exception", "An exception leaves the function.", "this costs nothing but the eager call"),
    ("capture", "Capture did not settle on where to stop.", _REPORT),
    ("generator", "The function is a generator or a coroutine function.",
     "compile the function that iterates over it"),
    ("caller-exception", "The exception is asked for that the caller may be handling.",
     "ask for it inside an except of the same function, or pass it in"),
    ("late-error",
     "An operation may raise where its exception is caught, or behind changes that are still to be"
     " made outside, and the graph has changed something before; indices are checked early where"
     " they can be.",
     "do what may raise first"),
    ("internal-error", "Something in dynacap went wrong that never should.", _REPORT),
    ("guards-do-not-hold", "What was seen while capturing no longer held right after it.",
     "do not change the objects that the function reads from another thread"),
)  # fmt: skip

REASONS: dict[str, BreakReason] = {**_TENSORS, **_EFFECTS, **_LANGUAGE}
