/* The table of entries: finds the entry whose guards hold and calls its function. */
#ifndef DYNACAP_ENTRY_TABLE_H
#define DYNACAP_ENTRY_TABLE_H

#include "checker.h"

struct EntryTableObject;

typedef struct {
    PyObject_HEAD
    PyObject *checker;              /* owned */
    PyObject *fn;                   /* owned */
    PyObject *watched;              /* owned: what keeps the watch on the guards' objects */
    PyObject *weakreflist;
    struct EntryTableObject *table; /* borrowed; NULL when the entry is in no table */
    Py_ssize_t hits;
    Py_ssize_t used; /* when it was added or ran last, by the table's clock */
    char dead;
} EntryObject;

typedef struct EntryTableObject {
    PyObject_HEAD
    vectorcallfunc vectorcall;
    PyObject *entries; /* owned tuple, never changed in place: a walk keeps the one it began with */
    struct EntryIndex *index; /* owned; of these entries or of earlier ones; NULL: none made */
    Py_ssize_t clock;
    PyObject *miss;    /* owned */
    PyObject *weakreflist;
} EntryTableObject;

extern PyTypeObject Entry_Type, EntryTable_Type;

/* entry.c: in no table yet; a new reference. */
EntryObject *entry_new(PyObject *checker, PyObject *fn);

/* entry_table.c */
/* The position of an entry in a tuple of entries; -1 if it is not there. */
Py_ssize_t entries_find(PyObject *entries, PyObject *entry);
/* A copy without the entry at `position` (-1: none), behind `first` (NULL: none). */
PyObject *entries_rearranged(PyObject *entries, Py_ssize_t position, PyObject *first);
int table_drop(EntryTableObject *table, EntryObject *entry); /* whether it was there; -1: failed */

/* entry_call.c: the vectorcall of a table. */
PyObject *table_call(PyObject *callable, PyObject *const *flat, size_t nargsf, PyObject *kwnames);

#endif
