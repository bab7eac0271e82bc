/* Being told when an object is given another class or another `__dict__`.
 *
 * CPython has no watchers for these, but each such assignment goes through the setter of one of
 * two descriptors: `object.__dict__["__class__"]`, and `__dict__` as a class statement makes it.
 * The setters stand in tables that are looked into at each assignment: ours take their place, end
 * the pulses of the object, and call those that stood there.  They are of the process and stay.
 * (Code in C that writes into an object which it does not know passes them by, as it would pass by
 * the watchers of dicts.)
 */
#include "pulse_table.h"

static PulseTable table;
static PyInterpreterState *home; /* whose objects are watched; others may run at the same time */
static setter set_class, set_dict; /* CPython's; NULL: ours do not stand there */
static PyObject *class_name, *dict_name;

/* Assignments at work.  They can run code (audit hooks, an end of the old class) before and after
 * the change: what is remembered there is not to rely on being told. */
static Py_ssize_t at_work;

static int
tell_and_set(setter set, PyObject *obj, PyObject *value, void *closure)
{
    if (home != PyInterpreterState_Get()) {
        return set(obj, value, closure);
    }
    at_work++;
    pulses_end(&table, obj);
    int failed = set(obj, value, closure);
    at_work--;
    return failed;
}

static int
tell_class(PyObject *obj, PyObject *value, void *closure)
{
    return tell_and_set(set_class, obj, value, closure);
}

static int
tell_dict(PyObject *obj, PyObject *value, void *closure)
{
    return tell_and_set(set_dict, obj, value, closure);
}

/* What a class's own dict has under a name, borrowed; NULL: nothing, or no descriptor made in C. */
static PyGetSetDef *
own_accessor(PyTypeObject *type, PyObject *name)
{
    PyObject *own = type_own_dict(type);
    PyObject *found = own == NULL ? NULL : PyDict_GetItemWithError(own, name);
    Py_XDECREF(own); /* the class holds it */
    return found == NULL || !Py_IS_TYPE(found, &PyGetSetDescr_Type)
               ? NULL
               : ((PyGetSetDescrObject *)found)->d_getset;
}

/* Put our setter where a class has CPython's. */
static int
take_over(PyTypeObject *type, PyObject *name, setter ours, setter *theirs)
{
    PyGetSetDef *accessor = own_accessor(type, name);
    if (accessor == NULL || accessor->set == NULL
        || (*theirs != NULL && accessor->set != ours && accessor->set != *theirs)) {
        return 0;
    }
    if (accessor->set != ours) {
        *theirs = accessor->set;
        accessor->set = ours;
    }
    return 1;
}

/* For all classes that have their `__dict__` from the same table as this one. */
static void
take_over_dict(PyObject *type)
{
    if (type != NULL) {
        take_over((PyTypeObject *)type, dict_name, tell_dict, &set_dict);
        Py_DECREF(type);
    }
}

/* Once; what could not be had is found missing by `class_tells`. */
static int
have_setters(void)
{
    if (home == NULL) {
        home = PyInterpreterState_Get();
        class_name = PyUnicode_InternFromString("__class__");
        dict_name = PyUnicode_InternFromString("__dict__");
        if (class_name != NULL && dict_name != NULL) {
            take_over(&PyBaseObject_Type, class_name, tell_class, &set_class);
            PyObject *meta = (PyObject *)&PyType_Type;
            take_over_dict(PyObject_CallFunction(meta, "s(){}", "Sample"));
            take_over_dict(PyObject_CallFunction(meta, "s(){s(s)}", "Sample", "__slots__", "__dict__"));
        }
        PyErr_Clear();
    }
    return set_class != NULL && set_dict != NULL && home == PyInterpreterState_Get();
}

/* Whether a class has no way of its own to assign these, but through our setters. */
static int
class_tells(PyTypeObject *cls)
{
    if (cls != &PyBaseObject_Type && !(cls->tp_flags & Py_TPFLAGS_HEAPTYPE)) {
        return 0; /* made in C: it knows its objects' layout, and can do anything */
    }
    PyObject *own = type_own_dict(cls);
    int readable = own != NULL && dict_has_only_str_keys(own);
    Py_XDECREF(own);
    if (!readable) {
        return 0;
    }
    PyGetSetDef *of_class = own_accessor(cls, class_name), *of_dict = own_accessor(cls, dict_name);
    return (of_class == NULL || of_class->set == tell_class)
           && (of_dict == NULL || of_dict->set == tell_dict);
}

int
watch_object(PyObject *obj, Pulse *pulse)
{
    PyObject *mro = Py_TYPE(obj)->tp_mro;
    if (!have_setters() || at_work > 0 || mro == NULL) {
        return 0;
    }
    for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(mro); i++) {
        if (!class_tells((PyTypeObject *)PyTuple_GET_ITEM(mro, i))) {
            return 0;
        }
    }
    return pulses_add(&table, obj, pulse);
}
