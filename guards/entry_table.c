/* _fastcheck.EntryTable and its entries. */
#include "entry_index.h"

#include <stddef.h>
#include <stdlib.h>

enum { FEW_SLOTS = 32, FEW_ENTRIES = 4 };

/* Entries. */

static int
entry_traverse(EntryObject *self, visitproc visit, void *arg)
{
    Py_VISIT(self->checker);
    Py_VISIT(self->fn);
    Py_VISIT(self->watched);
    return 0;
}

/* An entry that a table holds is cleared only with it: a walk relies on checker and fn. */
static int
entry_clear(EntryObject *self)
{
    self->dead = 1;
    Py_CLEAR(self->watched);
    Py_CLEAR(self->checker);
    Py_CLEAR(self->fn);
    return 0;
}

static void
entry_dealloc(EntryObject *self)
{
    PyObject_GC_UnTrack(self);
    if (self->weakreflist != NULL) {
        PyObject_ClearWeakRefs((PyObject *)self);
    }
    entry_clear(self);
    PyObject_GC_Del(self);
}

/* Positions of an entry in a tuple of entries; -1 if it is not there. */
static Py_ssize_t
find_entry(PyObject *entries, PyObject *entry)
{
    for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(entries); i++) {
        if (PyTuple_GET_ITEM(entries, i) == entry) {
            return i;
        }
    }
    return -1;
}

/* A copy without the entry at `position` (-1: none), behind `first` (NULL: none). */
static PyObject *
rearranged(PyObject *entries, Py_ssize_t position, PyObject *first)
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

static int
table_drop(EntryTableObject *table, EntryObject *entry)
{
    /* Making the copy may collect garbage and so change the table: look again until it did not. */
    for (;;) {
        PyObject *before = table->entries;
        Py_ssize_t position = find_entry(before, (PyObject *)entry);
        if (position < 0) {
            return 0;
        }
        PyObject *after = rearranged(before, position, NULL);
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

/* Called, with a weak reference to the entry as self, when an object of its guards dies. */
static PyObject *
entry_object_died(PyObject *entry_ref, PyObject *Py_UNUSED(object_ref))
{
    PyObject *entry = PyWeakref_Check(entry_ref) ? ((PyWeakReference *)entry_ref)->wr_object : NULL;
    if (entry != NULL && Py_IS_TYPE(entry, &Entry_Type) && Py_REFCNT(entry) > 0) {
        EntryObject *self = (EntryObject *)Py_NewRef(entry);
        self->dead = 1;
        int dropped = self->table == NULL ? 0 : table_drop(self->table, self);
        Py_DECREF(self);
        if (dropped < 0) {
            return NULL;
        }
    }
    Py_RETURN_NONE;
}

static PyMethodDef died_method
    = {"_object_died", entry_object_died, METH_O, "Drops an entry that can never fit again."};

static int
entry_watch(EntryObject *entry)
{
    PyObject *ref = PyWeakref_NewRef((PyObject *)entry, NULL), *died = NULL;
    if (ref != NULL) {
        died = PyCFunction_New(&died_method, ref);
        Py_DECREF(ref);
    }
    if (died == NULL) {
        return -1;
    }
    entry->watched = PyObject_CallMethod(entry->checker, "watch", "O", died);
    Py_DECREF(died);
    return entry->watched == NULL ? -1 : 0;
}

static PyObject *
entry_get_dead(EntryObject *self, void *Py_UNUSED(closure))
{
    return PyBool_FromLong(self->dead);
}

static PyObject *
entry_get_hits(EntryObject *self, void *Py_UNUSED(closure))
{
    return PyLong_FromSsize_t(self->hits);
}

static PyObject *
entry_get_object(EntryObject *self, void *offset)
{
    PyObject *found = *(PyObject **)((char *)self + (size_t)offset);
    return Py_NewRef(found == NULL ? Py_None : found);
}

static PyGetSetDef entry_fields[] = {
    {"checker", (getter)entry_get_object, NULL, "What decides whether the entry fits.",
     (void *)offsetof(EntryObject, checker)},
    {"fn", (getter)entry_get_object, NULL, "What runs, with the slots' values.",
     (void *)offsetof(EntryObject, fn)},
    {"hits", (getter)entry_get_hits, NULL, "How often it ran.", NULL},
    {"dead", (getter)entry_get_dead, NULL,
     "Whether an object died without which the guards cannot hold.", NULL},
    {NULL, NULL, NULL, NULL, NULL},
};

PyTypeObject Entry_Type = {
    PyVarObject_HEAD_INIT(NULL, 0)
    .tp_name = "dynacap.guards._fastcheck.Entry",
    .tp_doc = "A checker and the function that runs where its guards hold.",
    .tp_basicsize = sizeof(EntryObject),
    .tp_flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_HAVE_GC | Py_TPFLAGS_DISALLOW_INSTANTIATION,
    .tp_dealloc = (destructor)entry_dealloc,
    .tp_traverse = (traverseproc)entry_traverse,
    .tp_clear = (inquiry)entry_clear,
    .tp_weaklistoffset = offsetof(EntryObject, weakreflist),
    .tp_getset = entry_fields,
};

/* Calling. */

static void
move_to_front(EntryTableObject *table, PyObject *entry)
{
    PyObject *before = table->entries;
    Py_ssize_t position = find_entry(before, entry);
    PyObject *after = position <= 0 ? NULL : rearranged(before, position, entry);
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

static PyObject *
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
    EntryObject *entry = PyObject_GC_New(EntryObject, &Entry_Type);
    if (entry == NULL) {
        return NULL;
    }
    entry->checker = Py_NewRef(checker);
    entry->fn = Py_NewRef(fn);
    entry->watched = entry->weakreflist = NULL;
    entry->table = NULL;
    entry->hits = 0;
    entry->used = ++self->clock;
    entry->dead = 0;
    PyObject_GC_Track(entry);
    PyObject *before, *after = NULL;
    if (entry_watch(entry) == 0) {
        do { /* until nothing changed the table while the copy was made */
            Py_XDECREF(after);
            before = self->entries;
            after = rearranged(before, -1, (PyObject *)entry);
        } while (after != NULL && self->entries != before);
    }
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
    PyObject *sorted = rearranged(self->entries, -1, NULL);
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
