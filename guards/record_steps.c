/* Remembering how each value was come by. */
#include "record.h"

enum { MAX_CHANGES = 4 };

/* Where a field of a function lies that is read through a descriptor; NULL: it is no such field. */
static PyObject *const *
function_field(const Node *node, PyObject *base)
{
    PyFunctionObject *function = (PyFunctionObject *)base;
    if (!PyFunction_Check(base)) {
        return NULL;
    }
    if (PyUnicode_CompareWithASCIIString(node->name, "__code__") == 0) {
        return &function->func_code;
    }
    if (PyUnicode_CompareWithASCIIString(node->name, "__kwdefaults__") == 0) {
        return &function->func_kwdefaults;
    }
    return NULL;
}

/* What a step reads, borrowed; NULL where it cannot be had, or not without running code. */
PyObject *
read_quietly(Recorder *r, Node *node)
{
    PyObject *base = node->base < 0 ? NULL : r->seen[node->base_node];
    if (node->base >= 0 && r->certainty[node->base_node] == LOST) {
        return NULL;
    }
    if (node->step == STEP_ATTR) {
        PyObject *const *place = function_field(node, base);
        return place == NULL ? NULL : *place;
    }
    if (node->step == STEP_DEQUE_ITEM || node->step == STEP_CALL
        || node->step == STEP_TENSOR_NUMBER) {
        return NULL;
    }
    int owned = 0;
    PyObject *value = take_step(node, base, r->flat, r->nflat, &owned);
    if (value == NULL) {
        PyErr_Clear();
    }
    return value;
}

static Certainty
certain_if(int vouched, Certainty certainty)
{
    return vouched ? certainty : LOST;
}

static Certainty
record_argument(Recorder *r, Node *node, PyObject *value)
{
    /* Containers mostly come anew with each call. */
    if (!node->has_children || node->changes >= MAX_CHANGES || PyTuple_CheckExact(value)
        || PyDict_CheckExact(value) || PyList_CheckExact(value)) {
        return LOST;
    }
    r->made->roots[r->made->nroots++] = (Root){node, value};
    return PLACE;
}

/* A dict in a known state is known for the one that it was. */
static Certainty
record_instance_dict(Recorder *r, int32_t at, Node *node, PyObject *value)
{
    int32_t base = node->base_node;
    PyObject **place = _PyObject_GetDictPtr(r->seen[base]);
    /* Where the pointer lies is a matter of the type. */
    int vouched = place != NULL && *place == value && vouch_type(r, base)
                  && (r->typed[base] == BY_TELLING || vouch_pointer(r, place, value));
    return certain_if(vouched && vouch_state(r, at), OBJECT);
}

/* An item of a tuple that is a PLACE, if that is the type of the node which it belongs to. */
static Certainty
record_tuple_item(Recorder *r, PyObject *tuple, PyObject *value, Py_ssize_t i)
{
    const void *size = &((PyVarObject *)tuple)->ob_size;
    return certain_if(vouch_word(r, size, (uint64_t)Py_SIZE(tuple))
                          && vouch_pointer(r, &PyTuple_GET_ITEM(tuple, i), value),
                      PLACE);
}

static Certainty
record_item(Recorder *r, Node *node, PyObject *value)
{
    PyObject *base = r->seen[node->base_node];
    if (PyTuple_Check(base) && r->certainty[node->base_node] == OBJECT) {
        return OBJECT;
    }
    if (!vouch_type(r, node->base_node)) {
        return LOST;
    }
    if (PyTuple_Check(base)) {
        return record_tuple_item(r, base, value, node->index);
    }
    PyListObject *list = (PyListObject *)base;
    return certain_if(vouch_word(r, &((PyVarObject *)list)->ob_size, (uint64_t)Py_SIZE(base))
                          && vouch_pointer(r, &list->ob_item, (PyObject *)list->ob_item)
                          && vouch_pointer(r, &list->ob_item[node->index], value),
                      PLACE);
}

/* What the base has in a field of its struct, which can be set; `place` NULL: in no such field. */
static Certainty
record_field(Recorder *r, Node *node, PyObject *const *place, PyObject *value)
{
    return certain_if(place != NULL && *place == value && vouch_type(r, node->base_node)
                          && vouch_pointer(r, place, value),
                      PLACE);
}

/* An item of a tuple that a function has in a field of its struct. */
static Certainty
record_field_item(Recorder *r, Node *node, PyObject *const *place, PyObject *value)
{
    return record_field(r, node, place, *place) == LOST
               ? LOST
               : record_tuple_item(r, *place, value, node->index);
}

static Certainty
record_function(Recorder *r, Node *node, PyObject *value)
{
    PyFunctionObject *function = (PyFunctionObject *)r->seen[node->base_node];
    if (node->step == STEP_FUNCTION_DEFAULT) {
        return record_field_item(r, node, &function->func_defaults, value);
    }
    if (r->certainty[node->base_node] == OBJECT) {
        return OBJECT; /* its globals and cells are its own for good */
    }
    switch (node->step) {
    case STEP_FUNCTION_GLOBALS:
        return record_field(r, node, &function->func_globals, value);
    case STEP_FUNCTION_BUILTINS:
        return record_field(r, node, &function->func_builtins, value);
    default:
        return record_field_item(r, node, &function->func_closure, value);
    }
}

static Certainty
record_sys_module(Recorder *r)
{
    return certain_if(vouch_dict(r, PyImport_GetModuleDict()), OBJECT);
}

Certainty
record_step(Recorder *r, int32_t at, Node *node, PyObject *value)
{
    PyObject *base = node->base < 0 ? NULL : r->seen[node->base_node];
    switch (node->step) {
    case STEP_LOCAL:
        return record_argument(r, node, value);
    case STEP_CONST:
        return certain_if(vouch_operand(r, &node->key), OBJECT);
    case STEP_SYS_MODULE:
        return record_sys_module(r);
    case STEP_DICT_KEY: /* an OrderedDict can change its order without changing as a dict */
        return certain_if(!PyODict_Check(base) && vouch_state(r, node->base_node), OBJECT);
    case STEP_DICT_ITEM:
    case STEP_CLASS_ATTR:
    case STEP_SUPER_ATTR:
        return certain_if(vouch_state(r, node->base_node), OBJECT);
    case STEP_INSTANCE_DICT:
        return record_instance_dict(r, at, node, value);
    case STEP_TYPE_OF:
        return certain_if(vouch_type(r, node->base_node), PLACE);
    case STEP_SEQ_ITEM:
        return record_item(r, node, value);
    case STEP_CELL_CONTENTS:
        return record_field(r, node, &((PyCellObject *)base)->ob_ref, value);
    case STEP_ATTR:
        return record_field(r, node, function_field(node, base), value);
    default:
        return record_function(r, node, value);
    }
}
