/* Conditions on sizes as a small program over 64-bit numbers and doubles; see size_program.py. */
#ifndef DYNACAP_SIZE_PROGRAM_H
#define DYNACAP_SIZE_PROGRAM_H

#include "cpython.h"

typedef struct {
    uint8_t op;
    int32_t left, right; /* cells; of what is read: which value, and the dimension */
    int64_t number; /* of a constant; a double as its bits */
} Instruction;

typedef struct {
    Instruction *code;
    Py_ssize_t count; /* 0: there is no program */
} SizeProgram;

enum { SIZES_DOUBT = 2 };

/* From a tuple of (name, left, right, number). */
int size_program_init(SizeProgram *program, PyObject *code);
void size_program_clear(SizeProgram *program);

/* 1 or 0; SIZES_DOUBT: only Python can tell.  Runs no code. */
int size_program_run(const SizeProgram *program, PyObject *const *values);

#endif
