/* Remembering, shared by its parts: record.c goes over the program, record_steps.c and
 * record_checks.c say what has to be remembered of one node, vouch.c remembers it.
 *
 * A node is remembered as an OBJECT where the facts say that it is the very one (what a dict in a
 * known state holds), and as a PLACE where they only say at which address it lies (an item of a
 * list): another object may come to lie there, so what makes objects unchangeable proves nothing,
 * and all that is read of it is a fact.
 */
#ifndef DYNACAP_RECORD_H
#define DYNACAP_RECORD_H

#include "recall.h"

enum { KNOWN_WEAK = 8, MAX_LIKES = 32 };

typedef enum { LOST, PLACE, OBJECT } Certainty;

/* What vouches for the type of a value: a word, that it cannot change, or that both a change of it
 * and of which `__dict__` the value has are told of. */
typedef enum { NOTHING_YET, BY_WORD, FOR_GOOD, BY_TELLING } Voucher;

typedef struct {
    Program *program;
    PyObject *const *flat;
    Py_ssize_t nflat;
    Recall *made;
    /* By node: the value, how sure it is, whether its state is vouched for, its type's Voucher. */
    PyObject **seen;
    uint8_t *certainty, *vouched, *typed;
    const void *weak[KNOWN_WEAK]; /* places of weak references, of which there are facts */
    int nweak;
    int32_t likes[MAX_LIKES]; /* specs that known tensors are compared with */
    int nlikes;
    int failed; /* no memory */
} Recorder;

/* vouch.c: 1 if what is remembered now says so, 0 if that cannot be had. */
int vouch_word(Recorder *r, const void *place, uint64_t expected);
int vouch_pointer(Recorder *r, const void *place, PyObject *expected);
int vouch_operand(Recorder *r, const Operand *operand); /* that the object is the one meant */
int vouch_type(Recorder *r, int32_t at); /* that the value is of the type of which it is */
int vouch_dict(Recorder *r, PyObject *dict);
/* That the dict or class which is the value is in the state in which it is. */
int vouch_state(Recorder *r, int32_t at);

/* record_steps.c */
PyObject *read_quietly(Recorder *r, Node *node); /* borrowed; NULL: not without running code */
Certainty record_step(Recorder *r, int32_t at, Node *node, PyObject *value);

/* record_checks.c */
int runs_each_time(const Check *check);
/* Whether all checks of a node are vouched for, but those to be made each time. */
int record_checks(Recorder *r, int32_t at, Node *node);

#endif
