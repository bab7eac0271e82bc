/* Which pulses end when something happens to an object. */
#ifndef DYNACAP_PULSE_TABLE_H
#define DYNACAP_PULSE_TABLE_H

#include "watch.h"

typedef struct {
    PyObject *of; /* borrowed, compared only; NULL: a free place */
    Pulse **pulses; /* owned references; NULL: taken out */
    Py_ssize_t count, room;
} PulsePlace;

/* Zeroed at first. */
typedef struct {
    PulsePlace *places;
    size_t size, used; /* size is a power of two; used counts the places that are not free */
} PulseTable;

/* 0: no memory. */
int pulses_add(PulseTable *table, PyObject *of, Pulse *pulse);

/* End and forget those of this object.  Whether there were any. */
int pulses_end(PulseTable *table, PyObject *of);

#endif
