#include "binding.h"
#include "compiled_function.h"

/* One call being bound; all borrowed but bound[], extra and rest. */
typedef struct {
    PyFunctionObject *function;
    PyCodeObject *code;
    PyObject **bound;
    PyObject *rest; /* the **kwargs dict, in bound[] too; NULL: the function takes none */
} Call;

/* Positional arguments, and the tuple of those left over. */
static int
bind_positional(Call *call, PyObject *const *args, Py_ssize_t nargs)
{
    Py_ssize_t wanted = call->code->co_argcount;
    Py_ssize_t taken = nargs < wanted ? nargs : wanted;
    for (Py_ssize_t i = 0; i < taken; i++) {
        call->bound[i] = Py_NewRef(args[i]);
    }
    if (!(call->code->co_flags & CO_VARARGS)) {
        return nargs <= wanted;
    }
    PyObject *extra = PyTuple_New(nargs - taken);
    if (extra == NULL) {
        return -1;
    }
    for (Py_ssize_t i = taken; i < nargs; i++) {
        PyTuple_SET_ITEM(extra, i - taken, Py_NewRef(args[i]));
    }
    call->bound[wanted + call->code->co_kwonlyargcount] = extra;
    return 1;
}

/* The index of the parameter that a keyword (borrowed) names, -1: none, -2: an error is set. */
static Py_ssize_t
find_parameter(const PyCodeObject *code, PyObject *keyword)
{
    PyObject *names = code->co_localsplusnames;
    Py_ssize_t end = code->co_argcount + code->co_kwonlyargcount;
    for (Py_ssize_t i = code->co_posonlyargcount; i < end; i++) {
        if (PyTuple_GET_ITEM(names, i) == keyword) {
            return i;
        }
    }
    for (Py_ssize_t i = code->co_posonlyargcount; i < end; i++) {
        int same = PyObject_RichCompareBool(PyTuple_GET_ITEM(names, i), keyword, Py_EQ);
        if (same != 0) {
            return same < 0 ? -2 : i;
        }
    }
    return -1;
}

static int
bind_keyword(Call *call, PyObject *keyword, PyObject *value)
{
    if (!PyUnicode_Check(keyword)) {
        return 0;
    }
    Py_ssize_t i = find_parameter(call->code, keyword);
    if (i == -2) {
        return -1;
    }
    if (i >= 0) {
        int is_free = call->bound[i] == NULL;
        if (is_free) {
            call->bound[i] = Py_NewRef(value);
        }
        return is_free;
    }
    if (call->rest == NULL) {
        return 0;
    }
    return PyDict_SetItem(call->rest, keyword, value) < 0 ? -1 : 1;
}

static int
bind_keywords(Call *call, PyObject *const *values, PyObject *kwnames)
{
    if (call->code->co_flags & CO_VARKEYWORDS) {
        call->rest = PyDict_New();
        if (call->rest == NULL) {
            return -1;
        }
        call->bound[code_n_arguments(call->code) - 1] = call->rest;
    }
    int status = 1;
    Py_ssize_t count = kwnames == NULL ? 0 : PyTuple_GET_SIZE(kwnames);
    for (Py_ssize_t i = 0; i < count && status == 1; i++) {
        status = bind_keyword(call, PyTuple_GET_ITEM(kwnames, i), values[i]);
    }
    return status;
}

/* Defaults of positional parameters, as they are now. */
static int
bind_defaults(Call *call)
{
    PyObject *defaults = call->function->func_defaults;
    Py_ssize_t wanted = call->code->co_argcount;
    Py_ssize_t count = defaults == NULL ? 0 : PyTuple_GET_SIZE(defaults);
    for (Py_ssize_t i = 0; i < wanted; i++) {
        if (call->bound[i] != NULL) {
            continue;
        }
        Py_ssize_t at = i - (wanted - count);
        if (at < 0) {
            return 0;
        }
        call->bound[i] = Py_NewRef(PyTuple_GET_ITEM(defaults, at));
    }
    return 1;
}

/* Defaults of keyword-only parameters, as they are now. */
static int
bind_keyword_defaults(Call *call)
{
    PyObject *defaults = call->function->func_kwdefaults;
    Py_ssize_t first = call->code->co_argcount;
    for (Py_ssize_t i = first; i < first + call->code->co_kwonlyargcount; i++) {
        if (call->bound[i] != NULL) {
            continue;
        }
        PyObject *name = PyTuple_GET_ITEM(call->code->co_localsplusnames, i);
        PyObject *value = defaults == NULL ? NULL : PyDict_GetItemWithError(defaults, name);
        if (value == NULL) {
            return PyErr_Occurred() ? -1 : 0;
        }
        call->bound[i] = Py_NewRef(value);
    }
    return 1;
}

int
bind_arguments(PyFunctionObject *function, PyObject **bound, PyObject *const *args,
               Py_ssize_t nargs, PyObject *kwnames)
{
    Call call = {function, (PyCodeObject *)function->func_code, bound, NULL};
    Py_ssize_t total = code_n_arguments(call.code);
    memset(bound, 0, total * sizeof(PyObject *));
    int status = bind_positional(&call, args, nargs);
    if (status == 1) {
        status = bind_keywords(&call, args + nargs, kwnames);
    }
    if (status == 1) {
        status = bind_defaults(&call);
    }
    if (status == 1) {
        status = bind_keyword_defaults(&call);
    }
    if (status != 1) {
        for (Py_ssize_t i = 0; i < total; i++) {
            Py_XDECREF(bound[i]);
        }
    }
    return status;
}
