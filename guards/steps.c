/* Steps from one value to the next: a borrowed value, or NULL with or without an exception. */
#include "walk.h"

static inline PyObject *
step_dict_item(Node *node, PyObject *base)
{
    if (!PyDict_Check(base)) {
        return NULL;
    }
    uint64_t tag = dict_tag(base);
    if (tag != 0 && tag == node->base_tag) {
        return node->cached;
    }
    PyObject *value = find_item(base, &node->key, &node->hint);
    node->cached = value;
    node->base_tag = value == NULL ? 0 : tag;
    return value;
}

static PyObject *
class_value(Node *node, PyObject *base)
{
    if (node->step == STEP_CLASS_ATTR) {
        return _PyType_Lookup((PyTypeObject *)base, node->name);
    }
    return super_lookup((PyTypeObject *)base, operand_object(&node->key), node->name);
}

static inline PyObject *
step_class_attr(Node *node, PyObject *base)
{
    if (!PyType_Check(base)) {
        return NULL;
    }
    uint64_t tag = type_tag((PyTypeObject *)base);
    if (tag != 0 && tag == node->base_tag) {
        return node->cached;
    }
    PyObject *value = class_value(node, base);
    node->cached = value; /* the look-up gave the class a tag if it had none */
    node->base_tag = value == NULL ? 0 : type_tag((PyTypeObject *)base);
    return value;
}

static inline PyObject *
tuple_item(PyObject *tuple, Py_ssize_t index)
{
    if (tuple == NULL || !PyTuple_Check(tuple) || index >= PyTuple_GET_SIZE(tuple)) {
        return NULL;
    }
    return PyTuple_GET_ITEM(tuple, index);
}

static inline PyObject *
step_seq_item(Node *node, PyObject *base)
{
    if (PyList_Check(base)) {
        return node->index < PyList_GET_SIZE(base) ? PyList_GET_ITEM(base, node->index) : NULL;
    }
    return tuple_item(base, node->index);
}

static PyObject *
step_function(Node *node, PyObject *base)
{
    if (!PyFunction_Check(base)) {
        return NULL;
    }
    PyFunctionObject *function = (PyFunctionObject *)base;
    switch (node->step) {
    case STEP_FUNCTION_GLOBALS:
        return function->func_globals;
    case STEP_FUNCTION_BUILTINS:
        return function->func_builtins;
    case STEP_CLOSURE_CELL:
        return tuple_item(function->func_closure, node->index);
    default:
        return tuple_item(function->func_defaults, node->index);
    }
}

static PyObject *
step_sys_module(Node *node)
{
    PyObject *modules = PyImport_GetModuleDict();
    return modules == NULL || !PyDict_Check(modules)
               ? NULL
               : find_item(modules, &node->key, &node->hint);
}

/* A new reference. */
static PyObject *
step_call(PyObject *function, PyObject *base)
{
    PyObject *answer = PyObject_CallOneArg(function, base);
    PyObject *value = tuple_item(answer, 0);
    Py_XINCREF(value);
    Py_XDECREF(answer);
    return value;
}

/* A new reference. */
static PyObject *
step_tensor_number(Node *node, PyObject *base)
{
    const int64_t *numbers;
    int32_t ndim;
    /* An offset is asked for as of dimension 0, which a tensor without any does not have. */
    if (tensor_sizes(base, &numbers, &ndim) == 1 && node->index < ndim) {
        return PyLong_FromLongLong(numbers[node->hint]);
    }
    return step_call(node->key.obj, base);
}

/* The value of a node; *owned says whether the reference is new. */
PyObject *
take_step(Node *node, PyObject *base, PyObject *const *flat, Py_ssize_t nflat, int *owned)
{
    switch (node->step) {
    case STEP_LOCAL:
        return node->index < nflat ? flat[node->index] : NULL;
    case STEP_CONST: {
        PyObject *value = operand_object(&node->key);
        return value == Py_None && node->key.kind == BY_WEAKREF ? NULL : value;
    }
    case STEP_DICT_ITEM:
        return step_dict_item(node, base);
    case STEP_INSTANCE_DICT:
        return instance_dict(base);
    case STEP_CLASS_ATTR:
    case STEP_SUPER_ATTR:
        return step_class_attr(node, base);
    case STEP_SEQ_ITEM:
        return step_seq_item(node, base);
    case STEP_CELL_CONTENTS:
        return PyCell_Check(base) ? PyCell_GET(base) : NULL;
    case STEP_TYPE_OF:
        return (PyObject *)Py_TYPE(base);
    case STEP_DICT_KEY:
        return PyDict_Check(base) ? key_at(base, node->index) : NULL;
    case STEP_SYS_MODULE:
        return step_sys_module(node);
    case STEP_ATTR:
        *owned = 1;
        return read_field(base, node->name);
    case STEP_DEQUE_ITEM:
        *owned = 1;
        return deque_item(base, node->index);
    case STEP_TENSOR_NUMBER:
        *owned = 1;
        return step_tensor_number(node, base);
    case STEP_CALL:
        *owned = 1;
        return step_call(node->key.obj, base);
    default:
        return step_function(node, base);
    }
}
