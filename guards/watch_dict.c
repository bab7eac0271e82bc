/* One dict watcher for the process (CPython has eight), shared by all that remember something.
 *
 * The death of a dict is a change, too.  CPython calls before the change is made.
 */
#include "pulse_table.h"

#if HAVE_DICT_WATCHERS

static PulseTable table;
static int watcher = -1;         /* -1: none was free */
static PyInterpreterState *home; /* whose watcher it is */

static int
dict_changed(PyDict_WatchEvent event, PyObject *dict, PyObject *key, PyObject *value)
{
    (void)key, (void)value;
    if (pulses_end(&table, dict) && event != PyDict_EVENT_DEALLOCATED) {
        PyDict_Unwatch(watcher, dict);
    }
    return 0;
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
        inline_stores_tell = 1; /* or it would not be watched as it is */
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
    if (home == NULL) {
        home = PyInterpreterState_Get();
        watcher = PyDict_AddWatcher(dict_changed);
        PyErr_Clear();
        try_inline_store();
    }
    return watcher >= 0 && home == PyInterpreterState_Get();
}

/* Have the dict hold its values itself: it does so from when an item is popped, and that is put
 * back at once, where it was.  Nothing runs meanwhile that could see the dict without it. */
static int
leave_inline(PyObject *dict)
{
    int can = PyDict_CheckExact(dict) && dict_has_only_str_keys(dict) && PyDict_GET_SIZE(dict) > 0;
    PyObject *item = can ? PyObject_CallMethod(dict, "popitem", NULL) : NULL;
    if (item == NULL) {
        PyErr_Clear();
        return 0;
    }
    if (PyDict_SetItem(dict, PyTuple_GET_ITEM(item, 0), PyTuple_GET_ITEM(item, 1)) < 0) {
        Py_FatalError("no memory to put an attribute back");
    }
    Py_DECREF(item);
    return !dict_has_inline_values(dict);
}

/* Whether all stores to the dict are told of. */
static int
tells(PyObject *dict)
{
    return inline_stores_tell || !dict_has_inline_values(dict) || leave_inline(dict);
}

int
watch_dict(PyObject *dict, Pulse *pulse)
{
    if (!have_watcher() || !tells(dict)) {
        return 0;
    }
    if (PyDict_Watch(watcher, dict) < 0) {
        PyErr_Clear();
        return 0;
    }
    return pulses_add(&table, dict, pulse);
}

#else

int
watch_dict(PyObject *Py_UNUSED(dict), Pulse *Py_UNUSED(pulse))
{
    return 0;
}

#endif
