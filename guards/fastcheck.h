/* Shared by the parts of the guard checker: what a program of checks consists of. */
#ifndef DYNACAP_FASTCHECK_H
#define DYNACAP_FASTCHECK_H

#include "cpython.h"

#include <string.h>

/* An object to compare with.  `kind` says how. */
typedef enum {
    BY_STRING,   /* an exact str, compared by value */
    BY_VALUE,    /* a constant, compared by exact type and value */
    BY_IDENTITY, /* the object itself, held */
    BY_WEAKREF,  /* the object that this weak reference refers to */
} OperandKind;

typedef struct {
    PyObject *obj; /* owned */
    OperandKind kind;
} Operand;

/* The object itself, borrowed; None (which nothing weakly held is) once it is dead. */
static inline PyObject *
operand_object(const Operand *operand)
{
    if (operand->kind == BY_WEAKREF) {
        return ((PyWeakReference *)operand->obj)->wr_object;
    }
    return operand->obj;
}

static inline int
operand_is(const Operand *operand, PyObject *value)
{
    if (operand->kind == BY_WEAKREF) {
        return value != Py_None && ((PyWeakReference *)operand->obj)->wr_object == value;
    }
    return operand->obj == value;
}

static inline uint64_t
word_at(const void *place, Py_ssize_t offset)
{
    uint64_t word;
    memcpy(&word, (const char *)place + offset, sizeof(word));
    return word;
}

/* constants.c */
int same_constant(PyObject *left, PyObject *right); /* 1, 0, or -1 with an exception */
int operand_matches(const Operand *operand, PyObject *value);

/* raw_reads.c: reading objects as they lie in memory.  Borrowed references unless said otherwise;
 * NULL without an exception where there is nothing. */
PyObject *find_item(PyObject *dict, const Operand *key, Py_ssize_t *hint);
PyObject *key_at(PyObject *dict, Py_ssize_t index);
PyObject *instance_dict(PyObject *obj);
PyObject *read_field(PyObject *obj, PyObject *name); /* a new reference */
PyObject *super_lookup(PyTypeObject *type, PyObject *after, PyObject *name);
PyObject *deque_item(PyObject *obj, Py_ssize_t index); /* a new reference */
Py_ssize_t raw_length(PyObject *obj);                  /* -1 for what has no length */
int raw_reads_init(void);

/* 0 where the exception that is set means no more than a guard that does not hold. */
static inline int
swallow_exception(void)
{
    if (PyErr_Occurred() && PyErr_ExceptionMatches(PyExc_KeyboardInterrupt)) {
        return -1;
    }
    PyErr_Clear();
    return 0;
}

#endif
