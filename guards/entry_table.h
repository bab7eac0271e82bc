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

#endif
