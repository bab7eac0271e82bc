/* Goes on from a suspended region while all is as usual, without a Python frame in between. */
#ifndef DYNACAP_HOOK_TRAMPOLINE_H
#define DYNACAP_HOOK_TRAMPOLINE_H

#include "cpython.h"

extern PyType_Spec path_spec, trampoline_spec;

/* Keep the types (borrowed) that the specs became. */
void trampoline_set_types(PyTypeObject *path, PyTypeObject *trampoline);

/* The class of suspended results (borrowed; NULL: none). */
void trampoline_set_suspend_type(PyTypeObject *type);

/* What `finish` (borrowed), perhaps a Trampoline, makes of a suspended result (borrowed). */
PyObject *finish_suspended(PyObject *finish, PyObject *suspend);

#endif
