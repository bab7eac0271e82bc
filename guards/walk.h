/* The parts of a walk over a program, one file each.
 *
 * What keeps it safe.  Values are borrowed where nothing can run between reading and last use, and
 * held (`owned` registers) where something can: a getter of torch's, a guard in Python, a
 * collection of garbage, another thread.  A pointer kept from the last walk is used only right
 * after its holder was found unchanged.
 */
#ifndef DYNACAP_WALK_H
#define DYNACAP_WALK_H

#include "program.h"

/* steps.c: the value of a node, borrowed unless *owned is set; NULL where there is none. */
PyObject *take_step(Node *node, PyObject *base, PyObject *const *flat, Py_ssize_t nflat,
                    int *owned);

/* The rest answers 1, 0, or -1 with an exception. */

/* checks.c */
int check_value(Program *program, Check *check, PyObject *value);
int check_range(Program *program, int32_t from, int32_t to, PyObject *value);
int check_call(PyObject *holds, PyObject *const *values, Py_ssize_t count);

/* relations.c */
int relation_holds(Relation *relation, PyObject **regs);

/* state.c */
int state_holds(State *state);
int make_probe(State *state); /* after the first check that passes: in the state expected */

/* What one walk has read: values by register, and the references that it holds. */
typedef struct {
    PyObject **regs, **held;
    Py_ssize_t nheld;
} Reading;

/* walk.c: visit the nodes at these positions in order; NULL: all nodes. */
int walk_nodes(Program *program, const int32_t *positions, Py_ssize_t count,
               PyObject *const *flat, Py_ssize_t nflat, Reading *reading);

#endif
