/* One dict watcher for the process (CPython has eight), shared by all that remember something.
 *
 * A table maps each watched dict to the pulses that end when it changes.  Dicts are not held: the
 * death of one is a change, too.  CPython calls before the change is made.
 */
#include "watch.h"

Pulse *
pulse_new(void)
{
    Pulse *pulse = PyMem_Malloc(sizeof(Pulse));
    if (pulse != NULL) {
        *pulse = (Pulse){1, 1};
    }
    return pulse;
}

void
pulse_release(Pulse *pulse)
{
    if (pulse != NULL && --pulse->refs == 0) {
        PyMem_Free(pulse);
    }
}

#if HAVE_DICT_WATCHERS

typedef struct {
    PyObject *dict; /* borrowed; NULL: a free place; GONE: one that was taken */
    Pulse **pulses; /* owned references */
    Py_ssize_t count, room;
} Watched;

#define GONE ((PyObject *)&table)

static struct {
    Watched *places;
    size_t size, used; /* size is a power of two; used counts the places that are not free */
} table;

static int watcher = -1; /* -1: none was free */

static size_t
first_place(PyObject *dict, size_t size)
{
    return (((uintptr_t)dict >> 4) * 0x9E3779B97F4A7C15u >> 20) & (size - 1);
}

/* The place of a dict, or the free one where the search for it ends. */
static Watched *
find_place(Watched *places, size_t size, PyObject *dict)
{
    size_t i = first_place(dict, size);
    while (places[i].dict != NULL && places[i].dict != dict) {
        i = (i + 1) & (size - 1);
    }
    return &places[i];
}

/* Make room for one more: a new table, without the places of dicts that are gone. */
static int
table_grow(void)
{
    size_t live = 0;
    for (size_t i = 0; i < table.size; i++) {
        live += table.places[i].dict != NULL && table.places[i].dict != GONE;
    }
    size_t size = 64;
    while (size < 4 * (live + 1)) {
        size *= 2;
    }
    Watched *places = PyMem_Calloc(size, sizeof(Watched));
    if (places == NULL) {
        return 0;
    }
    for (size_t i = 0; i < table.size; i++) {
        PyObject *dict = table.places[i].dict;
        if (dict != NULL && dict != GONE) {
            *find_place(places, size, dict) = table.places[i];
        }
    }
    PyMem_Free(table.places);
    table.places = places;
    table.size = size;
    table.used = live;
    return 1;
}

static int
dict_changed(PyDict_WatchEvent event, PyObject *dict, PyObject *key, PyObject *value)
{
    (void)key, (void)value;
    if (table.size == 0) {
        return 0;
    }
    Watched *place = find_place(table.places, table.size, dict);
    if (place->dict != dict) {
        return 0;
    }
    Watched old = *place;
    *place = (Watched){.dict = GONE};
    for (Py_ssize_t i = 0; i < old.count; i++) {
        old.pulses[i]->beats = 0;
        pulse_release(old.pulses[i]);
    }
    PyMem_Free(old.pulses);
    if (event != PyDict_EVENT_DEALLOCATED) {
        PyDict_Unwatch(watcher, dict);
    }
    return 0;
}

/* Room for one more pulse; those that ended otherwise go. */
static int
place_grow(Watched *place)
{
    Py_ssize_t kept = 0;
    for (Py_ssize_t i = 0; i < place->count; i++) {
        if (place->pulses[i]->beats) {
            place->pulses[kept++] = place->pulses[i];
        }
        else {
            pulse_release(place->pulses[i]);
        }
    }
    place->count = kept;
    if (kept < place->room) {
        return 1;
    }
    Py_ssize_t room = 2 * place->room + 1;
    Pulse **pulses = PyMem_Resize(place->pulses, Pulse *, room);
    if (pulses == NULL) {
        return 0;
    }
    place->pulses = pulses;
    place->room = room;
    return 1;
}

/* Whether storing an attribute tells those who watch the object's dict while the object keeps its
 * values inline: CPython 3.13.0 forgets to.  Found out by trying. */
static int inline_stores_tell;

static void
try_inline_store(void)
{
    PyObject *type = PyObject_CallFunction((PyObject *)&PyType_Type, "s(){}", "Sample");
    PyObject *sample = type == NULL ? NULL : PyObject_CallNoArgs(type);
    Pulse *pulse = pulse_new();
    if (sample != NULL && pulse != NULL && PyObject_SetAttrString(sample, "a", Py_None) == 0) {
        PyObject *dict = PyObject_GenericGetDict(sample, NULL);
        inline_stores_tell = 1; /* or it would not be watched at all */
        int watched = dict != NULL && watch_dict(dict, pulse);
        inline_stores_tell = watched && PyObject_SetAttrString(sample, "a", Py_True) == 0
                             && !pulse->beats;
        Py_XDECREF(dict);
    }
    Py_XDECREF(sample);
    Py_XDECREF(type);
    pulse_release(pulse);
    PyErr_Clear();
}

/* Once none was free, none is asked for again: everything is walked. */
static int
have_watcher(void)
{
    static int asked;
    if (!asked) {
        asked = 1;
        watcher = PyDict_AddWatcher(dict_changed);
        PyErr_Clear();
        try_inline_store();
    }
    return watcher >= 0;
}

int
watch_dict(PyObject *dict, Pulse *pulse)
{
    if (!have_watcher() || (!inline_stores_tell && dict_has_inline_values(dict))
        || (4 * table.used >= 3 * table.size && !table_grow())) {
        return 0;
    }
    Watched *place = find_place(table.places, table.size, dict);
    if (!place_grow(place)) {
        return 0;
    }
    if (place->dict == NULL) {
        if (PyDict_Watch(watcher, dict) < 0) {
            PyErr_Clear();
            return 0;
        }
        place->dict = dict;
        table.used++;
    }
    place->pulses[place->count++] = pulse;
    pulse->refs++;
    return 1;
}

#else

int
watch_dict(PyObject *Py_UNUSED(dict), Pulse *Py_UNUSED(pulse))
{
    return 0;
}

#endif
