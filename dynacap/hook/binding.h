/* Call arguments to local variables, as CPython binds them at a function's entry. */
#ifndef DYNACAP_HOOK_BINDING_H
#define DYNACAP_HOOK_BINDING_H

#include "cpython.h"

/* Fill bound[0 : code_n_arguments(code)] with owned references. 1: bound; 0: the call does not fit
 * the signature; -1: an error is set. Nothing is owned unless bound. */
int bind_arguments(PyFunctionObject *function, PyObject **bound, PyObject *const *args,
                   Py_ssize_t nargs, PyObject *kwnames);

#endif
