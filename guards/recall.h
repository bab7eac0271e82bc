/* What a checker remembers of the last walk, so that the next one has little left to do.
 *
 * A walk goes over most values only to find them as they were.  What it read is remembered as
 * facts: a word of memory that holds what it held.  They are compared in the order of the walk, so
 * each place lies in an object that the facts before it vouch for.  The state of a dict is one
 * word where dicts have tags, and no word at all where CPython tells of changes (watch.c).  What
 * can change without any word is left to do: the metadata of tensors, whatever hangs below values
 * that come anew with each call, guards in Python.
 */
#ifndef DYNACAP_RECALL_H
#define DYNACAP_RECALL_H

#include "walk.h"
#include "watch.h"

typedef struct {
    const void *place;
    uint64_t expected;
} Fact;

/* An argument that must be the same object, and where the facts about what is below it begin. */
typedef struct {
    Node *node;
    PyObject *value; /* borrowed, compared only */
} Root;

/* A value whose checks in Python or of its metadata are made each time. */
typedef struct {
    PyObject *value; /* borrowed; the facts vouch for it */
    int32_t from, to;
} Recheck;

typedef struct {
    int32_t reg;
    PyObject *value; /* borrowed; the facts vouch for it */
} Known;

typedef struct Recall {
    Py_ssize_t refs;
    Pulse *pulse; /* one reference; ends as soon as a watched dict changes */
    Root *roots;
    Py_ssize_t nroots;
    Fact *facts;
    Py_ssize_t nfacts, room;
    Recheck *rechecks;
    Py_ssize_t nrechecks;
    KnownTensor *tensors; /* checked by memory alone, if that suffices */
    Py_ssize_t ntensors;
    int32_t *revisits; /* positions of the nodes that are walked as ever */
    Py_ssize_t nrevisits;
    Known *known; /* registers that those nodes and relations read, and values to be rechecked */
    Py_ssize_t nknown;
    int32_t *relations; /* positions of those that are looked at again */
    Py_ssize_t nrelations;
    PyObject **slots; /* borrowed; NULL: what a revisited node reads */
} Recall;

enum { RECALL_STALE = 2 };

/* Answer from what is remembered, if that still holds: 1 with a new reference in each slot; 0; -1
 * with an exception; RECALL_STALE: nothing is remembered, or something has changed. */
int recall_run(Program *program, PyObject *const *flat, Py_ssize_t nflat, Reading *reading,
               PyObject **slots);

/* Right after a walk in which all held: remember, unless that was of no use before. */
void recall_consider(Program *program, PyObject *const *flat, Py_ssize_t nflat);

void recall_drop(Program *program);
void recall_release(Recall *recall);

/* record.c: a new reference; NULL (without an exception) where nothing can be remembered. */
Recall *recall_make(Program *program, PyObject *const *flat, Py_ssize_t nflat);

#endif
