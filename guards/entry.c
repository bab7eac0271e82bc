/* _fastcheck.Entry: a checker and the function that it stands before. */
#include "entry_table.h"

#include <stddef.h>

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

EntryObject *
entry_new(PyObject *checker, PyObject *fn)
{
    EntryObject *entry = PyObject_GC_New(EntryObject, &Entry_Type);
    if (entry == NULL) {
        return NULL;
    }
    entry->checker = Py_NewRef(checker);
    entry->fn = Py_NewRef(fn);
    entry->watched = entry->weakreflist = NULL;
    entry->table = NULL;
    entry->hits = entry->used = 0;
    entry->dead = 0;
    PyObject_GC_Track(entry);
    if (entry_watch(entry) < 0) {
        Py_CLEAR(entry);
    }
    return entry;
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
