/* The frame of a generator that is not running: read, and written. */
#ifndef DYNACAP_HOOK_GENERATOR_STATE_H
#define DYNACAP_HOOK_GENERATOR_STATE_H

#include "cpython.h"

/* What _chook.pyi says of the functions of these names; owned, NULL with an error. */
PyObject *read_generator(PyObject *module, PyObject *args);
PyObject *write_generator(PyObject *module, PyObject *args);

#endif
