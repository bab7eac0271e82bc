/* Being told when a dict changes, where CPython has watchers for that. */
#ifndef DYNACAP_WATCH_H
#define DYNACAP_WATCH_H

#include "fastcheck.h"

/* Beats until one of the dicts changes that are watched for it. */
typedef struct {
    int beats;
    Py_ssize_t refs;
} Pulse;

Pulse *pulse_new(void); /* one reference; NULL: no memory, no exception */
void pulse_release(Pulse *pulse);

/* Have the pulse end when the dict changes or dies.  0: that cannot be had. */
int watch_dict(PyObject *dict, Pulse *pulse);

#endif
