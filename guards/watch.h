/* Being told of changes: when what is remembered relies on something that leaves no word to look
 * at, or too many, its pulse ends with the change.
 */
#ifndef DYNACAP_WATCH_H
#define DYNACAP_WATCH_H

#include "fastcheck.h"

/* Beats until something changes that is watched for it. */
typedef struct {
    int beats;
    Py_ssize_t refs;
} Pulse;

Pulse *pulse_new(void); /* one reference; NULL: no memory, no exception */
void pulse_release(Pulse *pulse);

/* Have the pulse end when the dict changes or dies.  0: that cannot be had; CPython 3.11 tells
 * nobody, and has tags. */
int watch_dict(PyObject *dict, Pulse *pulse);

/* Have the pulse end when the object is given another class or another `__dict__`.  Its death is
 * not told.  0: that cannot be had. */
int watch_object(PyObject *obj, Pulse *pulse);

#endif
