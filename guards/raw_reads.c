/* Reading objects as they lie in memory: no __getattr__, property or __eq__ runs.
 *
 * The meaning of each read is the function of the same purpose in raw.py.
 */
#include "fastcheck.h"

static PyTypeObject *deque_type; /* collections.deque, owned; its C API is not public */

int
raw_reads_init(void)
{
    PyObject *collections = PyImport_ImportModule("collections");
    if (collections == NULL) {
        return -1;
    }
    deque_type = (PyTypeObject *)PyObject_GetAttrString(collections, "deque");
    Py_DECREF(collections);
    return deque_type == NULL ? -1 : 0;
}

/* Look at every key.  Nothing here can change the dict, so the walk is safe. */
static PyObject *
scan_dict(PyObject *dict, const Operand *key, Py_ssize_t *hint)
{
    PyObject *found, *value;
    Py_ssize_t at = 0, next = 0;
    while (PyDict_Next(dict, &next, &found, &value)) {
        int matches = operand_matches(key, found);
        if (matches < 0) {
            return NULL;
        }
        if (matches) {
            *hint = at;
            return value;
        }
        at = next;
    }
    return NULL;
}

/* The value under a key.  `hint` is where the key was last time: that place is tried first. */
PyObject *
find_item(PyObject *dict, const Operand *key, Py_ssize_t *hint)
{
    PyObject *found, *value;
    Py_ssize_t at = *hint;
    if (PyDict_Next(dict, &at, &found, &value) && operand_is(key, found)) {
        return value;
    }
    if (key->kind == BY_STRING && dict_has_only_str_keys(dict)) {
        value = PyDict_GetItemWithError(dict, key->obj);
        if (value != NULL && PyDict_GET_SIZE(dict) <= 64) {
            scan_dict(dict, key, hint);
        }
        return value;
    }
    return scan_dict(dict, key, hint);
}

/* The index-th key of an OrderedDict, whose order is not that of its storage. */
static PyObject *
ordered_key_at(PyObject *dict, Py_ssize_t index)
{
    PyObject *keys = PyODict_Type.tp_iter(dict), *key = NULL;
    while (keys != NULL && index-- >= 0) {
        Py_XDECREF(key); /* the dict holds it, too */
        key = Py_TYPE(keys)->tp_iternext(keys);
        if (key == NULL) {
            PyErr_Clear(); /* it asks its keys for their hashes, which may be others now */
            break;
        }
    }
    Py_XDECREF(keys);
    Py_XDECREF(key);
    return key;
}

/* The index-th key in the order of iteration. */
PyObject *
key_at(PyObject *dict, Py_ssize_t index)
{
    PyObject *key;
    Py_ssize_t at = 0;
    if (PyODict_Check(dict)) {
        return ordered_key_at(dict, index);
    }
    while (PyDict_Next(dict, &at, &key, NULL)) {
        if (index-- == 0) {
            return key;
        }
    }
    return NULL;
}

/* The dict of an instance; made here if the object has kept its attributes without one. */
PyObject *
instance_dict(PyObject *obj)
{
    if (PyType_Check(obj)) {
        return NULL;
    }
    PyObject **place = _PyObject_GetDictPtr(obj);
    if (place == NULL) {
        return NULL;
    }
    if (*place == NULL) {
        PyObject *made = PyObject_GenericGetDict(obj, NULL);
        if (made == NULL) {
            return NULL;
        }
        Py_DECREF(made); /* the object holds it */
    }
    return *place;
}

/* An attribute that C code or __slots__ defines. */
PyObject *
read_field(PyObject *obj, PyObject *name)
{
    PyTypeObject *type = Py_TYPE(obj);
    PyObject *descriptor = _PyType_Lookup(type, name);
    if (descriptor == NULL) {
        return NULL;
    }
    PyTypeObject *kind = Py_TYPE(descriptor);
    if (kind != &PyGetSetDescr_Type && kind != &PyMemberDescr_Type) {
        return NULL;
    }
    Py_INCREF(descriptor);
    PyObject *value = kind->tp_descr_get(descriptor, obj, (PyObject *)type);
    Py_DECREF(descriptor);
    return value;
}

/* What the classes after `after` in the MRO define under a name. */
PyObject *
super_lookup(PyTypeObject *type, PyObject *after, PyObject *name)
{
    PyObject *mro = type->tp_mro;
    Py_ssize_t size = mro == NULL ? 0 : PyTuple_GET_SIZE(mro), i = 0;
    while (i < size && PyTuple_GET_ITEM(mro, i) != after) {
        i++;
    }
    for (i++; i < size; i++) {
        PyObject *own = type_own_dict((PyTypeObject *)PyTuple_GET_ITEM(mro, i));
        PyObject *found = own == NULL ? NULL : PyDict_GetItemWithError(own, name);
        Py_XDECREF(own); /* the class holds it */
        if (found != NULL || PyErr_Occurred()) {
            return found;
        }
    }
    return NULL;
}

PyObject *
deque_item(PyObject *obj, Py_ssize_t index)
{
    if (!PyObject_TypeCheck(obj, deque_type) || index >= Py_SIZE(obj)) {
        return NULL;
    }
    return deque_type->tp_as_sequence->sq_item(obj, index);
}

Py_ssize_t
raw_length(PyObject *obj)
{
    if (PyDict_Check(obj)) {
        return PyDict_GET_SIZE(obj);
    }
    if (PyList_Check(obj) || PyTuple_Check(obj) || PyBytes_Check(obj)
        || PyObject_TypeCheck(obj, deque_type)) {
        return Py_SIZE(obj);
    }
    if (PyAnySet_Check(obj)) {
        return PySet_GET_SIZE(obj);
    }
    if (PyUnicode_Check(obj)) {
        return PyUnicode_GET_LENGTH(obj);
    }
    return PyByteArray_Check(obj) ? PyByteArray_GET_SIZE(obj) : -1;
}
