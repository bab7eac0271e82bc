/* A callable that binds its arguments as a function would and hands them on as one flat vector. */
#ifndef DYNACAP_HOOK_COMPILED_FUNCTION_H
#define DYNACAP_HOOK_COMPILED_FUNCTION_H

#include "cpython.h"

typedef struct {
    PyObject_HEAD
    vectorcallfunc vectorcall;
    PyObject *function; /* owned: a Python function */
    PyObject *table;    /* owned: called as table(function, *bound) */
    PyObject *finish;   /* owned: called as finish(result) where the table suspends; NULL: none */
    PyObject *dict;     /* owned: attributes, to begin with those of the function */
    PyObject *weakrefs;
} CompiledFunction;

extern PyType_Spec compiled_function_spec;

/* Keep the type (borrowed) that compiled_function_spec became. */
void compiled_function_set_type(PyTypeObject *type);

/* The class of results that CompiledFunction.finish is for (borrowed; NULL: none). */
void compiled_function_set_suspend_type(PyTypeObject *type);

/* Call `answer` (borrowed), a frame callable or a CompiledFunction, with a flat vector of `count`
 * borrowed references: hook inactive, recursion limit eased. The result, owned. */
PyObject *run_flat(PyThreadState *tstate, PyObject *answer, PyObject *const *flat,
                   Py_ssize_t count);

/* How many arguments the code (borrowed) binds, the tuple and the dict of the rest included. */
static inline Py_ssize_t
code_n_arguments(const PyCodeObject *code)
{
    return code->co_argcount + code->co_kwonlyargcount + ((code->co_flags & CO_VARARGS) != 0)
           + ((code->co_flags & CO_VARKEYWORDS) != 0);
}

#endif
