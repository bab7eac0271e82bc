/* The checker as a Python object: a program and a __dict__-less shell for fast.py to subclass. */
#ifndef DYNACAP_CHECKER_H
#define DYNACAP_CHECKER_H

#include "program.h"

typedef struct {
    PyObject_HEAD
    Program program;
} CheckerObject;

extern PyTypeObject Checker_Type;

#endif
