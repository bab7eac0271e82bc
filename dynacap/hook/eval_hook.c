#include "eval_hook.h"
#include "activation.h"
#include "code_cache.h"
#include "compiled_function.h"
#include "traceback.h"

#define ANY_GENERATOR (CO_GENERATOR | CO_COROUTINE | CO_ASYNC_GENERATOR | CO_ITERABLE_COROUTINE)
#define FUNCTION_BODY (CO_OPTIMIZED | CO_NEWLOCALS)
#define FEW 16

PyObject *hook_never = NULL;
static PyObject *reporter = NULL; /* owned */

/* Where evaluation goes on below us: CPython's evaluator, or one that was there before ours. */
static _PyFrameEvalFunction below = _PyEval_EvalFrameDefault;
/* Ours was put in place and not taken away since; another may have been put on top of it. */
static int installed = 0;
static int wanted = 0;

static PyObject *hook_evaluate(PyThreadState *tstate, Frame *frame, int throwflag);

/* --- installing ------------------------------------------------------------------------------ */

/* One that was put on top of ours stays there, and calls ours if it is well behaved: ours on top
 * of it would be called by it in turn. */
static void
install(PyInterpreterState *interpreter, _PyFrameEvalFunction current)
{
    if (current == hook_evaluate || (installed && current != _PyEval_EvalFrameDefault)) {
        return;
    }
    below = current;
    installed = 1;
    _PyInterpreterState_SetEvalFrameFunc(interpreter, hook_evaluate);
}

static void
uninstall(PyInterpreterState *interpreter, _PyFrameEvalFunction current)
{
    if (current == hook_evaluate) {
        _PyInterpreterState_SetEvalFrameFunc(interpreter, below);
    }
    installed = installed && current != hook_evaluate && current != _PyEval_EvalFrameDefault;
}

void
evaluator_want(int want)
{
    PyInterpreterState *interpreter = PyInterpreterState_Get();
    _PyFrameEvalFunction current = _PyInterpreterState_GetEvalFrameFunc(interpreter);
    wanted = want;
    if (want) {
        install(interpreter, current);
    }
    else {
        uninstall(interpreter, current);
    }
}

int
evaluator_is_installed(void)
{
    return _PyInterpreterState_GetEvalFrameFunc(PyInterpreterState_Get()) == hook_evaluate;
}

void
hook_set_reporter(PyObject *function)
{
    Py_XSETREF(reporter, Py_XNewRef(function));
}

/* --- evaluating as if we were not there ------------------------------------------------------ */

static PyObject *
evaluate_aside(PyThreadState *tstate, Frame *frame, int throwflag)
{
    activation_step_aside();
    PyObject *result = below(tstate, frame, throwflag);
    activation_step_back();
    return result;
}

/* Where any evaluator is set, a trace function is told of one exception more for what an await or
 * `yield from` gives (from 3.12 on). */
static int
is_traced_await(PyThreadState *tstate, Frame *frame)
{
    return tstate->c_tracefunc != NULL && frame_code(frame)->co_flags & ANY_GENERATOR;
}

static PyObject *
evaluate_below(PyThreadState *tstate, Frame *frame, int throwflag)
{
    HookThread *thread = &hook_thread;
    if (!wanted) {
        evaluator_want(0); /* one that lay on top of ours when it was to go is gone by now */
    }
    if (thread->aside || thread->passing == frame) {
        /* Reached through an evaluator on top of ours; or one that we passed this very frame to
         * handed it back, since it was put on top of ours and then we on top of it. */
        return _PyEval_EvalFrameDefault(tstate, frame, throwflag);
    }
    if (thread->depth >= DEPTH_LIMIT || c_recursion_is_low(tstate) || is_traced_await(tstate, frame)) {
        return evaluate_aside(tstate, frame, throwflag);
    }
    const Frame *outer = thread->passing;
    thread->passing = frame;
    thread->depth++;
    PyObject *result = below(tstate, frame, throwflag);
    thread->depth--;
    thread->passing = outer;
    return result;
}

/* --- finishing a frame whose work was done elsewhere ----------------------------------------- */

/* Cells as MAKE_CELL and COPY_FREE_VARS leave them: whoever looks at the frame expects them. */
static void
make_cells(Frame *frame, PyCodeObject *code)
{
    if (code->co_ncellvars == 0 && code->co_nfreevars == 0) {
        return;
    }
    PyObject *raised = raised_take(); /* a cell that memory lacks for is left out */
    PyObject *closure = ((PyFunctionObject *)frame_function(frame))->func_closure;
    Py_ssize_t first_free = code->co_nlocalsplus - code->co_nfreevars;
    for (Py_ssize_t i = 0; i < first_free; i++) {
        int is_cell = _PyLocals_GetKind(code->co_localspluskinds, (int)i) & CO_FAST_CELL;
        if (is_cell && frame_make_cell(frame, i) < 0) {
            PyErr_Clear();
        }
    }
    for (Py_ssize_t i = 0; i < code->co_nfreevars; i++) {
        frame_fill_slot(frame, first_free + i, Py_NewRef(PyTuple_GET_ITEM(closure, i)));
    }
    if (raised != NULL) {
        raised_restore(raised);
    }
}

/* Return `result` (owned, taken over) from the frame; CPython clears it. */
static PyObject *
finish_with_result(PyThreadState *tstate, Frame *frame, PyCodeObject *stub, PyObject *result)
{
    make_cells(frame, frame_code(frame));
    frame_set_code(frame, stub, 0);
    frame_push(frame, result);
    return _PyEval_EvalFrameDefault(tstate, frame, 0);
}

/* Leave the frame by the exception that is set; CPython clears it. */
static PyObject *
finish_with_error(PyThreadState *tstate, Frame *frame, PyCodeObject *shown)
{
    PyCodeObject *stub = shown;
    if (traceback_tidy(frame_code(frame))) {
        PyObject *raised = raised_take();
        stub = code_quiet_return(frame_code(frame));
        if (stub == NULL) {
            PyErr_Clear();
            stub = shown;
        }
        raised_restore(raised);
    }
    make_cells(frame, frame_code(frame));
    frame_set_code(frame, stub, 1);
    return _PyEval_EvalFrameDefault(tstate, frame, 1);
}

/* --- offering a frame to the callback -------------------------------------------------------- */

/* Tell of an exception of the callback. 0: it was swallowed; -1: one is set, for the user. */
static int
report_failure(PyObject *function)
{
    if (!PyErr_ExceptionMatches(PyExc_Exception)) {
        return -1;
    }
    PyObject *raised = raised_take();
    PyObject *told = NULL;
    if (reporter != NULL) {
        told = PyObject_CallFunctionObjArgs(reporter, raised, function, NULL);
    }
    else {
        told = Py_NewRef(Py_None);
    }
    Py_DECREF(raised);
    Py_XDECREF(told);
    return told == NULL ? -1 : 0;
}

/* What the callback wants for `function` (borrowed): a frame callable, None or NEVER, owned;
 * NULL with an error for the user. */
static PyObject *
ask(PyThreadState *tstate, PyObject *function)
{
    Paused paused;
    activation_pause(tstate, &paused);
    PyObject *answer = PyObject_CallOneArg(paused.callback, function);
    if (answer == NULL && report_failure(function) == 0) {
        answer = Py_NewRef(Py_None);
    }
    activation_resume(tstate, &paused);
    return answer;
}

/* Call `answer` (borrowed) with the frame's function and arguments, or the namespace of a body,
 * which has none; its result, owned. */
static PyObject *
run_instead(PyThreadState *tstate, PyObject *answer, Frame *frame, Py_ssize_t n_arguments)
{
    PyObject *few[FEW];
    PyObject **flat = few;
    PyObject *namespace = frame_namespace(frame);
    Py_ssize_t count = 1 + (namespace != NULL) + n_arguments;
    if (count > FEW) {
        flat = PyMem_New(PyObject *, count);
        if (flat == NULL) {
            return PyErr_NoMemory();
        }
    }
    flat[0] = frame_function(frame);
    flat[1] = namespace;
    for (Py_ssize_t i = 0; i < n_arguments; i++) {
        flat[count - n_arguments + i] = frame_local(frame, i);
    }
    PyObject *result = run_flat(tstate, answer, flat, count);
    if (flat != few) {
        PyMem_Free(flat);
    }
    return result;
}

/* A function's own code runs in a namespace too, where `exec` or `__build_class__` is given it; it
 * has no use for that, and no way to be called with one. */
static int
has_function_entry(Frame *frame, PyCodeObject *code, int throwflag)
{
    int wanted = frame_namespace(frame) == NULL ? FUNCTION_BODY : 0;
    return !throwflag && !(code->co_flags & ANY_GENERATOR)
           && (code->co_flags & (wanted | CO_OPTIMIZED)) == wanted && frame_at_entry(frame);
}

/* Leave the frame as `answer` (owned, taken over; NULL: an error is set) has it. */
static PyObject *
replace_frame(PyThreadState *tstate, Frame *frame, PyCodeObject *code, PyObject *answer)
{
    PyObject *raised = answer == NULL ? raised_take() : NULL;
    PyCodeObject *stub = (PyCodeObject *)Py_XNewRef(code_shown_return(code));
    if (stub == NULL) {
        PyErr_Clear();
        if (raised != NULL) {
            raised_restore(raised);
            PyErr_WriteUnraisable(frame_function(frame));
        }
        Py_XDECREF(answer);
        return evaluate_below(tstate, frame, 0);
    }
    PyObject *result = NULL;
    if (answer != NULL) {
        result = run_instead(tstate, answer, frame, code_n_arguments(code));
        Py_DECREF(answer);
    }
    else {
        raised_restore(raised);
    }
    result = result != NULL ? finish_with_result(tstate, frame, stub, result)
                            : finish_with_error(tstate, frame, stub);
    Py_DECREF(stub); /* kept so long since its owner, the frame's code, may be gone */
    return result;
}

static PyObject *
offer(PyThreadState *tstate, Frame *frame, PyCodeObject *code)
{
    PyObject *answer = ask(tstate, frame_function(frame));
    if (answer != NULL && answer == hook_never && code_mark_never(code) < 0) {
        PyErr_Clear();
    }
    if (answer == Py_None || (answer != NULL && answer == hook_never)) {
        Py_DECREF(answer);
        return evaluate_below(tstate, frame, 0);
    }
    return replace_frame(tstate, frame, code, answer);
}

static PyObject *
hook_evaluate(PyThreadState *tstate, Frame *frame, int throwflag)
{
    HookThread *thread = &hook_thread;
    if (thread->callback == NULL || thread->depth >= DEPTH_LIMIT || thread->aside
        || *recursion_left(tstate) <= FEW_FRAMES || tstate->tracing /* in a trace or profile function */
        || tstate->c_tracefunc != NULL /* which is told of each line of the user's frames */) {
        return evaluate_below(tstate, frame, throwflag);
    }
    PyCodeObject *code = frame_code(frame);
    if (!has_function_entry(frame, code, throwflag) || code_is_never(code_note_find(code))) {
        return evaluate_below(tstate, frame, throwflag);
    }
    return offer(tstate, frame, code);
}
