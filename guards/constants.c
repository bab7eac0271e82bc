/* Comparing constants: by exact type and value, floats to the last bit, no user code. */
#include "fastcheck.h"

#include <string.h>

static int
same_items(PyObject *left, PyObject *right)
{
    Py_ssize_t size = PyTuple_GET_SIZE(left);
    if (size != PyTuple_GET_SIZE(right)) {
        return 0;
    }
    for (Py_ssize_t i = 0; i < size; i++) {
        int same = same_constant(PyTuple_GET_ITEM(left, i), PyTuple_GET_ITEM(right, i));
        if (same != 1) {
            return same;
        }
    }
    return 1;
}

static int
same_bounds(PyObject *left, PyObject *right)
{
    PySliceObject *a = (PySliceObject *)left, *b = (PySliceObject *)right;
    int same = same_constant(a->start, b->start);
    if (same == 1) {
        same = same_constant(a->stop, b->stop);
    }
    if (same == 1) {
        same = same_constant(a->step, b->step);
    }
    return same;
}

/* Both of one exact type.  One of the two is known to be a constant, so the type is that of one:
 * what is not listed here are torch's, whose == is in C. */
int
same_constant(PyObject *left, PyObject *right)
{
    PyTypeObject *type = Py_TYPE(left);
    if (left == right) {
        return 1;
    }
    if (type != Py_TYPE(right)) {
        return 0;
    }
    if (type == &PyUnicode_Type) {
        return PyUnicode_Compare(left, right) == 0;
    }
    if (type == &PyLong_Type) {
        return PyObject_RichCompareBool(left, right, Py_EQ);
    }
    if (type == &PyFloat_Type) {
        double a = PyFloat_AS_DOUBLE(left), b = PyFloat_AS_DOUBLE(right);
        return memcmp(&a, &b, sizeof(a)) == 0;
    }
    if (type == &PyComplex_Type) {
        Py_complex a = ((PyComplexObject *)left)->cval, b = ((PyComplexObject *)right)->cval;
        return memcmp(&a, &b, sizeof(a)) == 0;
    }
    if (type == &PyBytes_Type) {
        Py_ssize_t size = PyBytes_GET_SIZE(left);
        return size == PyBytes_GET_SIZE(right)
               && memcmp(PyBytes_AS_STRING(left), PyBytes_AS_STRING(right), (size_t)size) == 0;
    }
    if (PyTuple_Check(left)) {
        return same_items(left, right);
    }
    if (type == &PySlice_Type) {
        return same_bounds(left, right);
    }
    if (type == &PyBool_Type) {
        return 0; /* there are only two */
    }
    return PyObject_RichCompareBool(left, right, Py_EQ);
}

/* Whether a value found is the one wanted. */
int
operand_matches(const Operand *operand, PyObject *value)
{
    switch (operand->kind) {
    case BY_STRING:
    case BY_VALUE:
        return same_constant(operand->obj, value);
    default:
        return operand_is(operand, value);
    }
}
