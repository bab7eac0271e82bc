/* Which entries of a large table are worth a check, told by what differs between them. */
#ifndef DYNACAP_ENTRY_INDEX_H
#define DYNACAP_ENTRY_INDEX_H

#include "entry_table.h"

typedef struct EntryIndex EntryIndex;

/* Made from a tuple of entries, which it keeps; one reference.  NULL, without an exception: nothing
 * tells them apart, or no memory. */
EntryIndex *index_make(PyObject *entries);
EntryIndex *index_hold(EntryIndex *index);
void index_release(EntryIndex *index);
PyObject *index_entries(const EntryIndex *index); /* borrowed */
int index_visit(EntryIndex *index, visitproc visit, void *arg);

/* Positions of the entries that may fit; those left out cannot.  -1: that cannot be told. */
Py_ssize_t index_find(const EntryIndex *index, PyObject *const *flat, Py_ssize_t nflat,
                      const int32_t **positions);
/* Those that must be tried whatever the arguments are. */
Py_ssize_t index_others(const EntryIndex *index, const int32_t **positions);

#endif
