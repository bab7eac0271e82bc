#include "compiled_function.h"
#include "activation.h"
#include "binding.h"
#include "traceback.h"
#include "trampoline.h"
#include <structmember.h>

#define FEW 16
#define TAKES_MORE (CO_VARARGS | CO_VARKEYWORDS)

static PyTypeObject *compiled_type = NULL; /* owned */
static PyTypeObject *suspend_type = NULL;  /* owned */

void
compiled_function_set_type(PyTypeObject *type)
{
    Py_XSETREF(compiled_type, (PyTypeObject *)Py_XNewRef(type));
}

void
compiled_function_set_suspend_type(PyTypeObject *type)
{
    Py_XSETREF(suspend_type, (PyTypeObject *)Py_XNewRef(type));
}

/* --- running --------------------------------------------------------------------------------- */

/* What `finish` gives back suspended is run here, with no Python frame of ours on the stack: its
 * `values` are what to call, and what to call after that. */
static PyObject *
run_bare(PyObject *suspend)
{
    PyObject *run, *done, *result = NULL;
    PyObject *values = PyObject_GetAttrString(suspend, "values");
    Py_DECREF(suspend);
    if (values != NULL && PyArg_ParseTuple(values, "OO", &run, &done)) {
        Py_INCREF(run);
        Py_INCREF(done);
        Py_CLEAR(values);
        result = PyObject_CallNoArgs(run);
        Py_DECREF(run);
        PyObject *type, *value, *trace;
        PyErr_Fetch(&type, &value, &trace);
        PyObject *answer = PyObject_CallNoArgs(done);
        Py_DECREF(done);
        Py_XDECREF(answer);
        PyErr_Restore(type, value, trace);
    }
    Py_XDECREF(values);
    return result;
}

/* `result` (owned, taken over; NULL: an error) or, where the table suspended, what `finish`
 * (borrowed; NULL: none) makes of it. */
static PyObject *
finished(PyObject *result, PyObject *finish)
{
    if (result == NULL || finish == NULL || Py_TYPE(result) != suspend_type) {
        return result;
    }
    PyObject *final = finish_suspended(finish, result);
    Py_DECREF(result);
    return final != NULL && Py_TYPE(final) == suspend_type ? run_bare(final) : final;
}

static PyObject *
run_table(PyThreadState *tstate, CompiledFunction *self, PyObject *const *flat, Py_ssize_t count)
{
    Paused paused;
    PyObject *table = Py_NewRef(self->table); /* both may be replaced meanwhile */
    PyObject *finish = Py_XNewRef(self->finish);
    activation_pause(tstate, &paused);
    PyObject *result = finished(PyObject_Vectorcall(table, flat, count, NULL), finish);
    activation_resume(tstate, &paused);
    Py_XDECREF(finish);
    Py_DECREF(table);
    return result;
}

PyObject *
run_flat(PyThreadState *tstate, PyObject *answer, PyObject *const *flat, Py_ssize_t count)
{
    if (Py_TYPE(answer) == compiled_type) {
        return run_table(tstate, (CompiledFunction *)answer, flat, count);
    }
    Paused paused;
    activation_pause(tstate, &paused);
    PyObject *result = PyObject_Vectorcall(answer, flat, count, NULL);
    activation_resume(tstate, &paused);
    return result;
}

/* --- calling --------------------------------------------------------------------------------- */

/* Call the function itself: for what does not fit the signature, and in deep recursion. In eager
 * Python this call would nest no C call, so that only the C stack limits it. */
static PyObject *
call_function(CompiledFunction *self, PyObject *const *args, size_t nargsf, PyObject *kwnames)
{
    PyThreadState *tstate = PyThreadState_Get();
    if (c_stack_is_low()) {
        PyErr_SetString(PyExc_RecursionError,
                        "maximum recursion depth exceeded: the C stack is used up by calls "
                        "through compiled functions");
        return NULL;
    }
    c_recursion_lend(tstate, 1);
    PyObject *result = PyObject_Vectorcall(self->function, args, nargsf, kwnames);
    c_recursion_lend(tstate, -1);
    return result;
}

static PyObject *
call_aside(CompiledFunction *self, PyObject *const *args, size_t nargsf, PyObject *kwnames)
{
    if (hook_thread.aside) {
        return call_function(self, args, nargsf, kwnames);
    }
    activation_step_aside();
    PyObject *result = call_function(self, args, nargsf, kwnames);
    activation_step_back();
    return result;
}

/* Arguments are what the table wants: only the function goes in front of them. */
static PyObject *
call_direct(PyThreadState *tstate, CompiledFunction *self, PyObject *const *args, size_t nargsf)
{
    Py_ssize_t nargs = PyVectorcall_NARGS(nargsf);
    PyObject *few[FEW];
    if (nargsf & PY_VECTORCALL_ARGUMENTS_OFFSET) {
        PyObject **flat = (PyObject **)args - 1;
        PyObject *kept = flat[0];
        flat[0] = self->function;
        PyObject *result = run_table(tstate, self, flat, nargs + 1);
        flat[0] = kept;
        return result;
    }
    few[0] = self->function;
    memcpy(few + 1, args, nargs * sizeof(PyObject *));
    return run_table(tstate, self, few, nargs + 1);
}

static PyObject *
call_bound(PyThreadState *tstate, CompiledFunction *self, PyObject *const *args, size_t nargsf,
           PyObject *kwnames)
{
    PyFunctionObject *function = (PyFunctionObject *)self->function;
    Py_ssize_t count = code_n_arguments((PyCodeObject *)function->func_code);
    PyObject *few[FEW];
    PyObject *result = NULL;
    PyObject **flat = count + 1 > FEW ? PyMem_New(PyObject *, count + 1) : few;
    if (flat == NULL) {
        return PyErr_NoMemory();
    }
    flat[0] = self->function;
    int status =
        bind_arguments(function, flat + 1, args, PyVectorcall_NARGS(nargsf), kwnames);
    if (status == 0) {
        result = call_function(self, args, nargsf, kwnames); /* raises CPython's own TypeError */
    }
    if (status == 1) {
        result = run_table(tstate, self, flat, count + 1);
        if (result == NULL) {
            traceback_show_function(function);
        }
        for (Py_ssize_t i = 1; i <= count; i++) {
            Py_DECREF(flat[i]);
        }
    }
    if (flat != few) {
        PyMem_Free(flat);
    }
    return result;
}

static PyObject *
compiled_call(PyObject *op, PyObject *const *args, size_t nargsf, PyObject *kwnames)
{
    CompiledFunction *self = (CompiledFunction *)op;
    PyFunctionObject *function = (PyFunctionObject *)self->function;
    PyCodeObject *code = (PyCodeObject *)function->func_code;
    PyThreadState *tstate = PyThreadState_Get();
    if (hook_thread.depth >= DEPTH_LIMIT || hook_thread.aside || c_recursion_is_low(tstate)
        || *recursion_left(tstate) <= FEW_FRAMES) {
        return call_aside(self, args, nargsf, kwnames);
    }
    Py_ssize_t nargs = PyVectorcall_NARGS(nargsf);
    int fits = kwnames == NULL && nargs == code->co_argcount && code->co_kwonlyargcount == 0
               && !(code->co_flags & TAKES_MORE);
    if (!fits || (nargs + 1 > FEW && !(nargsf & PY_VECTORCALL_ARGUMENTS_OFFSET))) {
        return call_bound(tstate, self, args, nargsf, kwnames);
    }
    PyObject *result = call_direct(tstate, self, args, nargsf);
    if (result == NULL) {
        traceback_show_function(function);
    }
    return result;
}

/* --- being an object ------------------------------------------------------------------------- */

static const char *const copied[] = {"__module__", "__name__", "__qualname__", "__doc__", NULL};

/* What functools.update_wrapper does, into the instance's own dict. 0, or -1 with an error. */
static int
copy_attributes(CompiledFunction *self)
{
    PyObject *attributes = PyObject_GetAttrString(self->function, "__dict__");
    int status = attributes == NULL ? -1 : PyDict_Update(self->dict, attributes);
    for (int i = 0; copied[i] != NULL && status == 0; i++) {
        PyObject *value = PyObject_GetAttrString(self->function, copied[i]);
        if (value == NULL && PyErr_ExceptionMatches(PyExc_AttributeError)) {
            PyErr_Clear();
            continue;
        }
        status = value == NULL ? -1 : PyDict_SetItemString(self->dict, copied[i], value);
        Py_XDECREF(value);
    }
    if (status == 0) {
        status = PyDict_SetItemString(self->dict, "__wrapped__", self->function);
    }
    Py_XDECREF(attributes);
    return status;
}

static PyObject *
compiled_new(PyTypeObject *type, PyObject *args, PyObject *kwargs)
{
    static char *names[] = {"function", "table", "finish", NULL};
    PyObject *function, *table, *finish = Py_None;
    if (!PyArg_ParseTupleAndKeywords(args, kwargs, "O!O|O:CompiledFunction", names,
                                     &PyFunction_Type, &function, &table, &finish)) {
        return NULL;
    }
    CompiledFunction *self = (CompiledFunction *)type->tp_alloc(type, 0);
    if (self == NULL) {
        return NULL;
    }
    self->vectorcall = compiled_call;
    self->function = Py_NewRef(function);
    self->table = Py_NewRef(table);
    self->finish = finish == Py_None ? NULL : Py_NewRef(finish);
    self->dict = PyDict_New();
    if (self->dict == NULL || copy_attributes(self) < 0) {
        Py_CLEAR(self);
    }
    return (PyObject *)self;
}

static int
compiled_traverse(PyObject *op, visitproc visit, void *arg)
{
    CompiledFunction *self = (CompiledFunction *)op;
    Py_VISIT(Py_TYPE(op));
    Py_VISIT(self->function);
    Py_VISIT(self->table);
    Py_VISIT(self->finish);
    Py_VISIT(self->dict);
    return 0;
}

/* The function stays, since calls count on it; it can break its own cycles. */
static int
compiled_clear(PyObject *op)
{
    CompiledFunction *self = (CompiledFunction *)op;
    Py_XSETREF(self->table, Py_NewRef(Py_None));
    Py_CLEAR(self->finish);
    Py_CLEAR(self->dict);
    return 0;
}

static void
compiled_dealloc(PyObject *op)
{
    CompiledFunction *self = (CompiledFunction *)op;
    PyTypeObject *type = Py_TYPE(op);
    PyObject_GC_UnTrack(op);
    if (self->weakrefs != NULL) {
        PyObject_ClearWeakRefs(op);
    }
    compiled_clear(op);
    Py_CLEAR(self->function);
    Py_CLEAR(self->table);
    type->tp_free(op);
    Py_DECREF(type);
}

static PyObject *
compiled_repr(PyObject *op)
{
    PyFunctionObject *function = (PyFunctionObject *)((CompiledFunction *)op)->function;
    return PyUnicode_FromFormat("<dynacap compiled function %U at %p>", function->func_qualname,
                                op);
}

/* A method of an instance, as functions bind. */
static PyObject *
compiled_get(PyObject *op, PyObject *instance, PyObject *owner)
{
    if (instance == NULL || instance == Py_None) {
        return Py_NewRef(op);
    }
    return PyMethod_New(op, instance);
}

/* By name, as functions are pickled and copied. */
static PyObject *
compiled_reduce(PyObject *op, PyObject *unused)
{
    return PyObject_GetAttrString(op, "__qualname__");
}

/* The attribute of the function which `closure` names. */
static PyObject *
get_through(PyObject *op, void *closure)
{
    return PyObject_GetAttrString(((CompiledFunction *)op)->function, closure);
}

static int
set_through(PyObject *op, PyObject *value, void *closure)
{
    return PyObject_SetAttrString(((CompiledFunction *)op)->function, closure, value);
}

static PyObject *
get_table(PyObject *op, void *closure)
{
    return Py_NewRef(((CompiledFunction *)op)->table);
}

static int
set_table(PyObject *op, PyObject *value, void *closure)
{
    if (value == NULL) {
        PyErr_SetString(PyExc_AttributeError, "a compiled function needs its table");
        return -1;
    }
    CompiledFunction *self = (CompiledFunction *)op;
    Py_SETREF(self->table, Py_NewRef(value));
    return 0;
}

static PyObject *
get_finish(PyObject *op, void *closure)
{
    PyObject *finish = ((CompiledFunction *)op)->finish;
    return Py_NewRef(finish == NULL ? Py_None : finish);
}

static int
set_finish(PyObject *op, PyObject *value, void *closure)
{
    CompiledFunction *self = (CompiledFunction *)op;
    PyObject *finish = value == Py_None ? NULL : value;
    Py_XSETREF(self->finish, Py_XNewRef(finish));
    return 0;
}

static PyGetSetDef getset[] = {
    {"__dict__", PyObject_GenericGetDict, PyObject_GenericSetDict, NULL, NULL},
    {"__code__", get_through, set_through, NULL, "__code__"},
    {"__defaults__", get_through, set_through, NULL, "__defaults__"},
    {"__kwdefaults__", get_through, set_through, NULL, "__kwdefaults__"},
    {"__annotations__", get_through, set_through, NULL, "__annotations__"},
    {"__annotate__", get_through, set_through, NULL, "__annotate__"},
    {"__type_params__", get_through, set_through, NULL, "__type_params__"},
    {"__globals__", get_through, NULL, NULL, "__globals__"},
    {"__closure__", get_through, NULL, NULL, "__closure__"},
    {"table", get_table, set_table, "Called as table(function, *bound).", NULL},
    {"finish", get_finish, set_finish, "Called as finish(result) where the table suspends.", NULL},
    {NULL},
};

static PyMemberDef members[] = {
    {"function", T_OBJECT_EX, offsetof(CompiledFunction, function), READONLY,
     "The Python function."},
    {"__vectorcalloffset__", T_PYSSIZET, offsetof(CompiledFunction, vectorcall), READONLY, NULL},
    {"__dictoffset__", T_PYSSIZET, offsetof(CompiledFunction, dict), READONLY, NULL},
    {"__weaklistoffset__", T_PYSSIZET, offsetof(CompiledFunction, weakrefs), READONLY, NULL},
    {NULL},
};

static PyMethodDef methods[] = {
    {"__reduce__", compiled_reduce, METH_NOARGS, NULL},
    {NULL},
};

static PyType_Slot slots[] = {
    {Py_tp_doc, "A function's calls, bound to one flat vector for a table of compiled entries."},
    {Py_tp_new, compiled_new},
    {Py_tp_call, PyVectorcall_Call},
    {Py_tp_descr_get, compiled_get},
    {Py_tp_repr, compiled_repr},
    {Py_tp_traverse, compiled_traverse},
    {Py_tp_clear, compiled_clear},
    {Py_tp_dealloc, compiled_dealloc},
    {Py_tp_getset, getset},
    {Py_tp_members, members},
    {Py_tp_methods, methods},
    {0, NULL},
};

PyType_Spec compiled_function_spec = {
    .name = "dynacap.hook._chook.CompiledFunction",
    .basicsize = sizeof(CompiledFunction),
    .flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_HAVE_GC | Py_TPFLAGS_HAVE_VECTORCALL
             | Py_TPFLAGS_METHOD_DESCRIPTOR,
    .slots = slots,
};
