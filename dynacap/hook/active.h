/* The context manager that hook.active(callback) gives. */
#ifndef DYNACAP_HOOK_ACTIVE_H
#define DYNACAP_HOOK_ACTIVE_H

#include "cpython.h"

typedef struct {
    PyObject_HEAD
    PyObject *callback; /* owned; NULL: deactivates */
    Py_ssize_t token;   /* -1: not entered */
} Active;

extern PyType_Spec active_spec;

#endif
