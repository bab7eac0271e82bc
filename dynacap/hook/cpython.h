/* What differs between CPython 3.11 and 3.14, under one name each.
 *
 * The only C file that tests a version.  Borrowed and owned are said at each pointer that is a
 * Python reference; a frame itself is always borrowed from the interpreter.
 */
#ifndef DYNACAP_HOOK_CPYTHON_H
#define DYNACAP_HOOK_CPYTHON_H

#define PY_SSIZE_T_CLEAN
#include <Python.h>
#include <opcode.h>

#if PY_VERSION_HEX < 0x030B0000
#error "the frame hook needs CPython 3.11 or later"
#elif PY_VERSION_HEX >= 0x030F0000
#error "the frame hook knows CPython up to 3.14; without it the settrace fallback serves"
#elif defined(Py_GIL_DISABLED)
#error "the frame hook counts on the GIL; without it the settrace fallback serves"
#endif

#ifndef Py_BUILD_CORE
#define Py_BUILD_CORE 1
#define DYNACAP_UNDEF_BUILD_CORE
#endif
#if PY_VERSION_HEX >= 0x030C0000
#undef _PyGC_FINALIZED /* 3.12 defines it again, differently, in a private header */
#endif
#if PY_VERSION_HEX >= 0x030E0000
#include <internal/pycore_frame.h>
#include <internal/pycore_interpframe.h>
#include <internal/pycore_interpframe_structs.h>
#include <internal/pycore_stackref.h>
#else
#include <internal/pycore_frame.h>
#endif
#include <internal/pycore_code.h>
#ifdef DYNACAP_UNDEF_BUILD_CORE
#undef Py_BUILD_CORE
#endif

typedef struct _PyInterpreterFrame Frame;

/* --- reading a frame ------------------------------------------------------------------------- */

/* The frame's code; borrowed. */
static inline PyCodeObject *
frame_code(const Frame *frame)
{
#if PY_VERSION_HEX >= 0x030E0000
    return (PyCodeObject *)PyStackRef_AsPyObjectBorrow(frame->f_executable);
#elif PY_VERSION_HEX >= 0x030D0000
    return (PyCodeObject *)frame->f_executable;
#else
    return frame->f_code;
#endif
}

/* The function that the frame runs; borrowed. */
static inline PyObject *
frame_function(const Frame *frame)
{
#if PY_VERSION_HEX >= 0x030E0000
    return PyStackRef_AsPyObjectBorrow(frame->f_funcobj);
#elif PY_VERSION_HEX >= 0x030C0000
    return frame->f_funcobj;
#else
    return (PyObject *)frame->f_func;
#endif
}

/* The mapping in which a body keeps its names; borrowed, NULL at the entry of a function. */
static inline PyObject *
frame_namespace(const Frame *frame)
{
    return frame->f_locals;
}

/* Whether no instruction has run yet (false for each resume of a generator). */
static inline int
frame_at_entry(const Frame *frame)
{
#if PY_VERSION_HEX >= 0x030D0000
    return frame->instr_ptr == _PyCode_CODE(frame_code(frame));
#else
    return frame->prev_instr == _PyCode_CODE(frame_code(frame)) - 1;
#endif
}

/* Local number i; borrowed. At entry, arguments come first. */
static inline PyObject *
frame_local(const Frame *frame, Py_ssize_t i)
{
#if PY_VERSION_HEX >= 0x030E0000
    return PyStackRef_AsPyObjectBorrow(frame->localsplus[i]);
#else
    return frame->localsplus[i];
#endif
}

/* --- changing a frame ------------------------------------------------------------------------ */

/* Put an object (owned, taken over) into a slot that is empty. */
static inline void
frame_fill_slot(Frame *frame, Py_ssize_t i, PyObject *object)
{
#if PY_VERSION_HEX >= 0x030E0000
    frame->localsplus[i] = PyStackRef_FromPyObjectSteal(object);
#else
    frame->localsplus[i] = object;
#endif
}

/* Make the cell of local number i, as MAKE_CELL does, where frame objects take it for granted that
 * a variable which becomes a cell is one (3.13). Elsewhere they look for MAKE_CELL instead. */
static inline int
frame_make_cell(Frame *frame, Py_ssize_t i)
{
#if PY_VERSION_HEX >= 0x030D0000
    PyObject *value = frame_local(frame, i);
    PyObject *cell = PyCell_New(value);
    if (cell == NULL) {
        return -1;
    }
    frame_fill_slot(frame, i, cell);
    Py_XDECREF(value);
#else
    (void)frame;
    (void)i;
#endif
    return 0;
}

/* Let the frame run another code object (borrowed) of the same size: from its start, or, where
 * `begun`, as if its first instruction were running. */
static inline void
frame_set_code(Frame *frame, PyCodeObject *code, int begun)
{
#if PY_VERSION_HEX >= 0x030E0000
    _PyStackRef old = frame->f_executable;
    frame->f_executable = PyStackRef_FromPyObjectNew(code);
    frame->instr_ptr = _PyCode_CODE(code);
    PyStackRef_CLOSE(old);
#elif PY_VERSION_HEX >= 0x030D0000
    PyObject *old = frame->f_executable;
    frame->f_executable = Py_NewRef(code);
    frame->instr_ptr = _PyCode_CODE(code);
    Py_DECREF(old);
#else
    PyCodeObject *old = frame->f_code;
    frame->f_code = (PyCodeObject *)Py_NewRef(code);
    frame->prev_instr = _PyCode_CODE(code) - (begun ? 0 : 1);
    Py_DECREF(old);
#endif
    (void)begun;
}

/* Push a value (owned, taken over) on the frame's stack. */
static inline void
frame_push(Frame *frame, PyObject *value)
{
#if PY_VERSION_HEX >= 0x030E0000
    *frame->stackpointer++ = PyStackRef_FromPyObjectSteal(value);
#else
    frame->localsplus[frame->stacktop++] = value;
#endif
}

/* --- a generator that is not running --------------------------------------------------------- */

/* Its frame; borrowed. */
static inline Frame *
generator_frame(PyObject *generator)
{
#if PY_VERSION_HEX >= 0x030E0000
    return &((PyGenObject *)generator)->gi_iframe;
#else
    return (Frame *)((PyGenObject *)generator)->gi_iframe;
#endif
}

/* 1 where it is suspended at a yield, 0 where it has not started, -1 otherwise. */
static inline int
generator_standing(PyObject *generator)
{
    int state = ((PyGenObject *)generator)->gi_frame_state;
#if PY_VERSION_HEX >= 0x030D0000
    int suspended = FRAME_STATE_SUSPENDED(state);
#else
    int suspended = state == FRAME_SUSPENDED;
#endif
    return suspended ? 1 : state == FRAME_CREATED ? 0 : -1;
}

/* The place of the yield at which it is suspended, in code units. */
static inline Py_ssize_t
generator_at(const Frame *frame, PyCodeObject *code)
{
#if PY_VERSION_HEX >= 0x030D0000
    return frame->instr_ptr - _PyCode_CODE(code) - 1;
#else
    return frame->prev_instr - _PyCode_CODE(code);
#endif
}

/* Have it be suspended at another place; `delegates`: in a `yield from`. */
static inline void
generator_put(PyObject *generator, PyCodeObject *code, Py_ssize_t at, int delegates)
{
    Frame *frame = generator_frame(generator);
#if PY_VERSION_HEX >= 0x030D0000
    frame->instr_ptr = _PyCode_CODE(code) + at + 1;
    int state = delegates ? FRAME_SUSPENDED_YIELD_FROM : FRAME_SUSPENDED;
#else
    (void)delegates;
    frame->prev_instr = _PyCode_CODE(code) + at;
    int state = FRAME_SUSPENDED;
#endif
    ((PyGenObject *)generator)->gi_frame_state = (int8_t)state;
}

/* How many items lie on the stack of a frame that is put aside. */
static inline Py_ssize_t
frame_depth(const Frame *frame, PyCodeObject *code)
{
#if PY_VERSION_HEX >= 0x030E0000
    return frame->stackpointer - frame->localsplus - code->co_nlocalsplus;
#else
    return frame->stacktop - code->co_nlocalsplus;
#endif
}

static inline void
frame_set_depth(Frame *frame, PyCodeObject *code, Py_ssize_t depth)
{
#if PY_VERSION_HEX >= 0x030E0000
    _PyStackRef *first = frame->localsplus + code->co_nlocalsplus;
    for (Py_ssize_t i = 0; i < depth; i++) {
        first[i] = PyStackRef_NULL;
    }
    frame->stackpointer = first + depth;
#else
    for (Py_ssize_t i = 0; i < depth; i++) {
        frame->localsplus[code->co_nlocalsplus + i] = NULL;
    }
    frame->stacktop = (int)(code->co_nlocalsplus + depth);
#endif
}

/* Put an object (owned, taken over, or NULL) into a slot; what was there, owned, or NULL. */
static inline PyObject *
frame_swap_slot(Frame *frame, Py_ssize_t i, PyObject *object)
{
#if PY_VERSION_HEX >= 0x030E0000
    _PyStackRef old = frame->localsplus[i];
    frame->localsplus[i] =
        object == NULL ? PyStackRef_NULL : PyStackRef_FromPyObjectSteal(object);
    return PyStackRef_IsNull(old) ? NULL : PyStackRef_AsPyObjectSteal(old);
#else
    PyObject *old = frame->localsplus[i];
    frame->localsplus[i] = object;
    return old;
#endif
}

/* Whether a frame that ends lets go of its first local first, and of its last one last. */
#if PY_VERSION_HEX >= 0x030E0000
#define LOCALS_DIE_IN_ORDER 0
#else
#define LOCALS_DIE_IN_ORDER 1
#endif

/* --- recursion ------------------------------------------------------------------------------- */

/* How many more Python frames this thread may nest. */
static inline int *
recursion_left(PyThreadState *tstate)
{
#if PY_VERSION_HEX >= 0x030C0000
    return &tstate->py_recursion_remaining;
#else
    return &tstate->recursion_remaining;
#endif
}

static inline int
recursion_limit(PyThreadState *tstate)
{
#if PY_VERSION_HEX >= 0x030C0000
    return tstate->py_recursion_limit;
#else
    return tstate->recursion_limit;
#endif
}

/* Frames that a call of a C function takes from recursion_left() until it returns. */
#if PY_VERSION_HEX >= 0x030C0000
#define RECURSION_OF_C_CALL 0
#else
#define RECURSION_OF_C_CALL 1
#endif

/* Whether the interpreter's own limit on nested C calls is half used up. */
static inline int
c_recursion_is_low(PyThreadState *tstate)
{
#if PY_VERSION_HEX >= 0x030E0000
    (void)tstate; /* measures the C stack itself */
    return 0;
#elif PY_VERSION_HEX >= 0x030D0000
    return tstate->c_recursion_remaining < Py_C_RECURSION_LIMIT / 2;
#elif PY_VERSION_HEX >= 0x030C0000
    return tstate->c_recursion_remaining < C_RECURSION_LIMIT / 2;
#else
    (void)tstate; /* there is none */
    return 0;
#endif
}

/* Let so many evaluations more nest in C; the caller has looked at the C stack itself. */
static inline void
c_recursion_lend(PyThreadState *tstate, int evaluations)
{
#if PY_VERSION_HEX >= 0x030C0000 && PY_VERSION_HEX < 0x030E0000
    tstate->c_recursion_remaining += 2 * evaluations; /* an evaluation counts as two C calls */
#else
    (void)tstate;
    (void)evaluations;
#endif
}

/* Whether the interpreter itself stops C calls before they overflow the C stack. */
#if PY_VERSION_HEX >= 0x030E0000
#define C_STACK_IS_GUARDED 1
#else
#define C_STACK_IS_GUARDED 0
#endif

/* --- a note on each code object -------------------------------------------------------------- */

#if PY_VERSION_HEX >= 0x030C0000
#define code_extra_request PyUnstable_Eval_RequestCodeExtraIndex
#define code_extra_get PyUnstable_Code_GetExtra
#define code_extra_set PyUnstable_Code_SetExtra
#else
#define code_extra_request _PyEval_RequestCodeExtraIndex
#define code_extra_get _PyCode_GetExtra
#define code_extra_set _PyCode_SetExtra
#endif

/* --- the exception being raised -------------------------------------------------------------- */

/* Take it, its traceback attached; owned, NULL where there is none. */
static inline PyObject *
raised_take(void)
{
#if PY_VERSION_HEX >= 0x030C0000
    return PyErr_GetRaisedException();
#else
    PyObject *type, *value, *traceback;
    PyErr_Fetch(&type, &value, &traceback);
    if (type == NULL) {
        return NULL;
    }
    PyErr_NormalizeException(&type, &value, &traceback);
    if (traceback != NULL) {
        PyException_SetTraceback(value, traceback);
        Py_DECREF(traceback);
    }
    Py_DECREF(type);
    return value;
#endif
}

/* Raise it (owned, taken over), with the traceback that it carries. */
static inline void
raised_restore(PyObject *exception)
{
#if PY_VERSION_HEX >= 0x030C0000
    PyErr_SetRaisedException(exception);
#else
    PyErr_Restore(Py_NewRef(Py_TYPE(exception)), exception, PyException_GetTraceback(exception));
#endif
}

#endif
