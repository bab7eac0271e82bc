/* Calling a table: which entry runs. */
#include "entry_index.h"

enum { FEW_SLOTS = 32, FEW_ENTRIES = 4 };

static void
move_to_front(EntryTableObject *table, PyObject *entry)
{
    PyObject *before = table->entries;
    Py_ssize_t position = entries_find(before, entry);
    PyObject *after = position <= 0 ? NULL : entries_rearranged(before, position, entry);
    if (after != NULL && table->entries == before) {
        table->entries = after;
        Py_DECREF(before);
    }
    else {
        PyErr_Clear(); /* the order is a matter of speed only */
        Py_XDECREF(after);
    }
}

static void
note_hit(EntryTableObject *table, EntryObject *entry)
{
    entry->hits++;
    entry->used = ++table->clock;
    if (PyTuple_GET_SIZE(table->entries) <= FEW_ENTRIES
        && PyTuple_GET_ITEM(table->entries, 0) != (PyObject *)entry) {
        move_to_front(table, (PyObject *)entry);
    }
}

/* A checker that is not ours is asked through its method, and calls fn with a tuple. */
static PyObject *
try_foreign(EntryObject *entry, PyObject *const *flat, Py_ssize_t nflat, int *hit)
{
    PyObject *result = NULL, *vector = PyTuple_New(nflat);
    for (Py_ssize_t i = 0; vector != NULL && i < nflat; i++) {
        PyTuple_SET_ITEM(vector, i, Py_NewRef(flat[i]));
    }
    PyObject *name = PyUnicode_FromString("check"), *values = NULL;
    if (vector != NULL && name != NULL) {
        values = PyObject_CallMethodOneArg(entry->checker, name, vector);
    }
    if (values != NULL && values != Py_None) {
        *hit = 1;
        result = PyObject_Call(entry->fn, values, NULL);
    }
    Py_XDECREF(values);
    Py_XDECREF(name);
    Py_XDECREF(vector);
    return result;
}

/* Run the entry if its guards hold: its result or NULL with an exception, and *hit = 1.  NULL and
 * *hit = 0 where they do not hold, or with the exception that a check let through. */
static PyObject *
try_entry(EntryTableObject *table, EntryObject *entry, PyObject *const *flat, Py_ssize_t nflat,
          int *hit)
{
    PyObject *few[FEW_SLOTS + 1], **room = few, *result = NULL;
    if (entry->dead || entry->checker == NULL) {
        return NULL;
    }
    if (!PyObject_TypeCheck(entry->checker, &Checker_Type)) {
        result = try_foreign(entry, flat, nflat, hit);
        if (*hit) {
            note_hit(table, entry);
        }
        return result;
    }
    CheckerObject *checker = (CheckerObject *)Py_NewRef(entry->checker);
    Py_ssize_t count = checker->program.nslots;
    if (count > FEW_SLOTS) {
        room = PyMem_New(PyObject *, count + 1);
        if (room == NULL) {
            Py_DECREF(checker);
            return PyErr_NoMemory();
        }
    }
    PyObject **slots = room + 1; /* one before the arguments is for the callee to use */
    if (program_run(&checker->program, flat, nflat, slots) == 1) {
        *hit = 1;
        note_hit(table, entry);
        PyObject *fn = Py_NewRef(entry->fn);
        result = PyObject_Vectorcall(fn, slots, (size_t)count | PY_VECTORCALL_ARGUMENTS_OFFSET,
                                     NULL);
        Py_DECREF(fn);
        for (Py_ssize_t i = 0; i < count; i++) {
            Py_DECREF(slots[i]);
        }
    }
    if (room != few) {
        PyMem_Free(room);
    }
    Py_DECREF(checker);
    return result;
}

/* Try entries in turn, all of them or those at some positions, until one fits or a check lets an
 * exception through. */
static PyObject *
try_entries(EntryTableObject *table, PyObject *entries, const int32_t *positions, Py_ssize_t count,
            PyObject *const *flat, Py_ssize_t nflat, int *hit)
{
    PyObject *result = NULL;
    for (Py_ssize_t i = 0; i < count && !*hit; i++) {
        EntryObject *entry
            = (EntryObject *)PyTuple_GET_ITEM(entries, positions == NULL ? i : positions[i]);
        Py_INCREF(entry);
        result = try_entry(table, entry, flat, nflat, hit);
        Py_DECREF(entry);
        if (!*hit && PyErr_Occurred()) {
            return NULL;
        }
    }
    return result;
}

/* The index of the entries as they are now, held; NULL: there is none. */
static EntryIndex *
current_index(EntryTableObject *table)
{
    EntryIndex *old = table->index;
    if (old == NULL || index_entries(old) != table->entries) {
        table->index = index_make(table->entries);
        index_release(old);
    }
    return table->index == NULL ? NULL : index_hold(table->index);
}

/* Many entries: only those that what tells them apart does not rule out. */
static PyObject *
try_likely(EntryTableObject *table, PyObject *entries, PyObject *const *flat, Py_ssize_t nflat,
           int *hit)
{
    EntryIndex *index = current_index(table);
    const int32_t *likely = NULL, *others;
    Py_ssize_t count = -1;
    PyObject *result = NULL;
    if (index != NULL && index_entries(index) == entries) {
        count = index_find(index, flat, nflat, &likely);
    }
    if (count < 0) {
        result = try_entries(table, entries, NULL, PyTuple_GET_SIZE(entries), flat, nflat, hit);
    }
    else {
        result = try_entries(table, entries, likely, count, flat, nflat, hit);
        if (!*hit && !PyErr_Occurred()) {
            count = index_others(index, &others);
            result = try_entries(table, entries, others, count, flat, nflat, hit);
        }
    }
    index_release(index);
    return result;
}

PyObject *
table_call(PyObject *callable, PyObject *const *flat, size_t nargsf, PyObject *kwnames)
{
    EntryTableObject *self = (EntryTableObject *)callable;
    Py_ssize_t nflat = PyVectorcall_NARGS(nargsf);
    if (kwnames != NULL && PyTuple_GET_SIZE(kwnames) > 0) {
        PyErr_SetString(PyExc_TypeError, "a table of entries takes no keyword arguments");
        return NULL;
    }
    PyObject *entries = Py_NewRef(self->entries), *result;
    Py_ssize_t count = PyTuple_GET_SIZE(entries);
    int hit = 0;
    result = count <= FEW_ENTRIES ? try_entries(self, entries, NULL, count, flat, nflat, &hit)
                                  : try_likely(self, entries, flat, nflat, &hit);
    Py_DECREF(entries);
    if (hit || PyErr_Occurred()) {
        return result;
    }
    PyObject *miss = Py_NewRef(self->miss);
    result = PyObject_Vectorcall(miss, flat, (size_t)nflat, NULL);
    Py_DECREF(miss);
    return result;
}
