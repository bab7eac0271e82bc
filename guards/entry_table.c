/* _fastcheck.EntryTable: its life, what comes into it and goes. */
#include "entry_index.h"

#include <stddef.h>
#include <stdlib.h>

Py_ssize_t
entries_find(PyObject *entries, PyObject *entry)
{
    for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(entries); i++) {
        if (PyTuple_GET_ITEM(entries, i) == entry) {
            return i;
        }
    }
    return -1;
}

PyObject *
entries_rearranged(PyObject *entries, Py_ssize_t position, PyObject *first)
{
    Py_ssize_t size = PyTuple_GET_SIZE(entries), next = 0;
    PyObject *made = PyTuple_New(size - (position >= 0) + (first != NULL));
    if (made == NULL) {
        return NULL;
    }
    if (first != NULL) {
        PyTuple_SET_ITEM(made, next++, Py_NewRef(first));
    }
    for (Py_ssize_t i = 0; i < size; i++) {
        if (i != position) {
            PyTuple_SET_ITEM(made, next++, Py_NewRef(PyTuple_GET_ITEM(entries, i)));
        }
    }
    return made;
}

static void
forget_index(EntryTableObject *table)
{
    EntryIndex *index = table->index;
    table->index = NULL;
    index_release(index);
}

int
table_drop(EntryTableObject *table, EntryObject *entry)
{
    /* Making the copy may collect garbage and so change the table: look again until it did not. */
    for (;;) {
        PyObject *before = table->entries;
        Py_ssize_t position = entries_find(before, (PyObject *)entry);
        if (position < 0) {
            return 0;
        }
        PyObject *after = entries_rearranged(before, position, NULL);
        if (after == NULL) {
            return -1;
        }
        if (table->entries == before) {
            entry->table = NULL;
            table->entries = after;
            forget_index(table); /* it holds the entry */
            Py_DECREF(before);
            return 1;
        }
        Py_DECREF(after);
    }
}

/* The table's life. */

static PyObject *
table_new(PyTypeObject *type, PyObject *args, PyObject *kwargs)
{
    static char *names[] = {"miss", NULL};
    PyObject *miss;
    if (!PyArg_ParseTupleAndKeywords(args, kwargs, "O", names, &miss)) {
        return NULL;
    }
    if (!PyCallable_Check(miss)) {
        PyErr_SetString(PyExc_TypeError, "miss must be callable");
        return NULL;
    }
    PyObject *entries = PyTuple_New(0);
    EntryTableObject *self
        = entries == NULL ? NULL : (EntryTableObject *)type->tp_alloc(type, 0);
    if (self == NULL) {
        Py_XDECREF(entries);
        return NULL;
    }
    self->vectorcall = table_call;
    self->entries = entries;
    self->miss = Py_NewRef(miss);
    return (PyObject *)self;
}

static void
forget_entries(EntryTableObject *self)
{
    PyObject *empty = PyTuple_New(0), *old = self->entries; /* the empty tuple always exists */
    self->entries = empty;
    for (Py_ssize_t i = 0; old != NULL && i < PyTuple_GET_SIZE(old); i++) {
        ((EntryObject *)PyTuple_GET_ITEM(old, i))->table = NULL;
    }
    Py_XDECREF(old);
    forget_index(self);
}

static int
table_traverse(EntryTableObject *self, visitproc visit, void *arg)
{
    int stop = index_visit(self->index, visit, arg);
    if (stop) {
        return stop;
    }
    Py_VISIT(self->entries);
    Py_VISIT(self->miss);
    return 0;
}

static int
table_clear_references(EntryTableObject *self)
{
    forget_entries(self);
    Py_XSETREF(self->miss, Py_NewRef(Py_None)); /* a call now raises instead of crashing */
    return 0;
}

static void
table_dealloc(EntryTableObject *self)
{
    PyObject_GC_UnTrack(self);
    if (self->weakreflist != NULL) {
        PyObject_ClearWeakRefs((PyObject *)self);
    }
    forget_entries(self);
    Py_CLEAR(self->entries);
    Py_CLEAR(self->miss);
    Py_TYPE(self)->tp_free(self);
}

static PyObject *
table_add(EntryTableObject *self, PyObject *args)
{
    PyObject *checker, *fn;
    if (!PyArg_ParseTuple(args, "OO:add", &checker, &fn)) {
        return NULL;
    }
    EntryObject *entry = entry_new(checker, fn);
    if (entry == NULL) {
        return NULL;
    }
    entry->used = ++self->clock;
    PyObject *before, *after = NULL;
    do { /* until nothing changed the table while the copy was made */
        Py_XDECREF(after);
        before = self->entries;
        after = entries_rearranged(before, -1, (PyObject *)entry);
    } while (after != NULL && self->entries != before);
    if (after == NULL) {
        Py_DECREF(entry);
        return NULL;
    }
    entry->table = self;
    self->entries = after;
    Py_DECREF(before);
    if (entry->dead && table_drop(self, entry) < 0) { /* something died meanwhile */
        Py_CLEAR(entry);
    }
    return (PyObject *)entry;
}

static PyObject *
table_remove(EntryTableObject *self, PyObject *entry)
{
    if (!Py_IS_TYPE(entry, &Entry_Type)) {
        Py_RETURN_FALSE;
    }
    int dropped = table_drop(self, (EntryObject *)entry);
    return dropped < 0 ? NULL : PyBool_FromLong(dropped);
}

static PyObject *
table_clear(EntryTableObject *self, PyObject *Py_UNUSED(ignored))
{
    forget_entries(self);
    Py_RETURN_NONE;
}

static int
used_later(const void *left, const void *right)
{
    Py_ssize_t a = (*(EntryObject *const *)left)->used, b = (*(EntryObject *const *)right)->used;
    return (b > a) - (b < a);
}

static PyObject *
table_get_entries(EntryTableObject *self, void *Py_UNUSED(closure))
{
    PyObject *sorted = entries_rearranged(self->entries, -1, NULL);
    if (sorted != NULL && PyTuple_GET_SIZE(sorted) > 0) {
        qsort(&PyTuple_GET_ITEM(sorted, 0), (size_t)PyTuple_GET_SIZE(sorted), sizeof(PyObject *),
              used_later);
    }
    return sorted;
}

static PyObject *
table_get_miss(EntryTableObject *self, void *Py_UNUSED(closure))
{
    return Py_NewRef(self->miss);
}

static PyMethodDef table_methods[] = {
    {"add", (PyCFunction)table_add, METH_VARARGS,
     "add(checker, fn, /)\n--\n\nA new entry, tried first."},
    {"remove", (PyCFunction)table_remove, METH_O,
     "remove(entry, /)\n--\n\nTake an entry out; whether it was there."},
    {"clear", (PyCFunction)table_clear, METH_NOARGS, "clear()\n--\n\nTake all entries out."},
    {NULL, NULL, 0, NULL},
};

static PyGetSetDef table_fields[] = {
    {"entries", (getter)table_get_entries, NULL, "The entries, in the order of trying.", NULL},
    {"miss", (getter)table_get_miss, NULL, "Called where no entry fits.", NULL},
    {NULL, NULL, NULL, NULL, NULL},
};

PyTypeObject EntryTable_Type = {
    PyVarObject_HEAD_INIT(NULL, 0)
    .tp_name = "dynacap.guards._fastcheck.EntryTable",
    .tp_doc = "Runs the first entry whose guards hold; with none, miss(*flat).",
    .tp_basicsize = sizeof(EntryTableObject),
    .tp_flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_HAVE_GC | Py_TPFLAGS_HAVE_VECTORCALL,
    .tp_new = table_new,
    .tp_dealloc = (destructor)table_dealloc,
    .tp_traverse = (traverseproc)table_traverse,
    .tp_clear = (inquiry)table_clear_references,
    .tp_call = PyVectorcall_Call,
    .tp_vectorcall_offset = offsetof(EntryTableObject, vectorcall),
    .tp_weaklistoffset = offsetof(EntryTableObject, weakreflist),
    .tp_methods = table_methods,
    .tp_getset = table_fields,
};
