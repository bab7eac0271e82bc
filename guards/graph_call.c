/* _fastcheck.GraphCall: an entry's function that calls the graph itself.
 *
 * It takes the slots' values, hands the graph its inputs, and gives one of the graph's outputs or
 * what `rest` makes of them.  A Python function in between would push every input twice, and for
 * hundreds of parameters make a frame of a size for which CPython maps new memory on each call.
 */
#include "graph_call.h"

#include <stddef.h>

enum { FEW_VALUES = 32 };

/* Positions among the slots and, counted from -1 downwards, among the constants. */
typedef struct {
    int32_t *at;
    Py_ssize_t count;
} Choice;

typedef struct {
    PyObject_HEAD
    vectorcallfunc vectorcall;
    PyObject *graph;     /* owned */
    PyObject *constants; /* owned tuple */
    Choice inputs;
    Py_ssize_t noutputs;
    Py_ssize_t output; /* which of them is the result; -1: rest(outputs, *chosen) is */
    PyObject *rest;    /* owned; NULL where an output is the result */
    Choice chosen;
    PyObject *recover; /* owned; recover(error, inputs) gives outputs, or None; NULL: none */
    PyObject *again;   /* owned; again(*flat) is the result then */
    Choice flat;
} GraphCallObject;

static inline PyObject *
chosen_value(const GraphCallObject *self, int32_t at, PyObject *const *slots)
{
    return at >= 0 ? slots[at] : PyTuple_GET_ITEM(self->constants, -1 - at);
}

/* Call a function with what is chosen, behind `first` (NULL: nothing). */
static PyObject *
call_with(GraphCallObject *self, PyObject *function, PyObject *first, const Choice *choice,
          PyObject *const *slots)
{
    PyObject *few[FEW_VALUES + 2], **room = few, *result = NULL;
    if (choice->count > FEW_VALUES) {
        room = PyMem_New(PyObject *, choice->count + 2);
        if (room == NULL) {
            return PyErr_NoMemory();
        }
    }
    PyObject **values = room + 1; /* one before the arguments is for the callee to use */
    Py_ssize_t count = 0;
    if (first != NULL) {
        values[count++] = first;
    }
    for (Py_ssize_t i = 0; i < choice->count; i++) {
        values[count++] = chosen_value(self, choice->at[i], slots);
    }
    result = PyObject_Vectorcall(function, values, (size_t)count | PY_VECTORCALL_ARGUMENTS_OFFSET,
                                 NULL);
    if (room != few) {
        PyMem_Free(room);
    }
    return result;
}

static PyObject *
chosen_tuple(GraphCallObject *self, const Choice *choice, PyObject *const *slots)
{
    PyObject *made = PyTuple_New(choice->count);
    for (Py_ssize_t i = 0; made != NULL && i < choice->count; i++) {
        PyTuple_SET_ITEM(made, i, Py_NewRef(chosen_value(self, choice->at[i], slots)));
    }
    return made;
}

/* The graph raised: its outputs after all, None if the program is to run again, or NULL. */
static PyObject *
recovered(GraphCallObject *self, PyObject *const *slots)
{
    PyObject *type, *error, *traceback, *outputs = NULL;
    if (self->recover == NULL) {
        return NULL;
    }
    PyErr_Fetch(&type, &error, &traceback);
    PyErr_NormalizeException(&type, &error, &traceback);
    if (traceback != NULL) {
        PyException_SetTraceback(error, traceback);
    }
    PyObject *inputs = chosen_tuple(self, &self->inputs, slots);
    if (inputs != NULL) {
        /* What recover does and raises is done and raised while the error is being handled. */
        PyObject *outer = NULL, *outer_type = NULL, *outer_traceback = NULL;
        PyErr_GetExcInfo(&outer_type, &outer, &outer_traceback);
        PyErr_SetExcInfo(Py_NewRef(type), Py_NewRef(error), Py_XNewRef(traceback));
        outputs = PyObject_CallFunctionObjArgs(self->recover, error, inputs, NULL);
        PyErr_SetExcInfo(outer_type, outer, outer_traceback);
        Py_DECREF(inputs);
    }
    Py_XDECREF(type);
    Py_XDECREF(error);
    Py_XDECREF(traceback);
    return outputs;
}

static PyObject *
one_output(GraphCallObject *self, PyObject *outputs)
{
    PyObject *items = PySequence_Fast(outputs, "a compiled graph returns a tuple or a list");
    if (items == NULL) {
        return NULL;
    }
    PyObject *result = NULL;
    if (PySequence_Fast_GET_SIZE(items) == self->noutputs) {
        result = Py_NewRef(PySequence_Fast_GET_ITEM(items, self->output));
    }
    else {
        PyErr_Format(PyExc_ValueError, "a compiled graph returned %zd values, expected %zd",
                     PySequence_Fast_GET_SIZE(items), self->noutputs);
    }
    Py_DECREF(items);
    return result;
}

static PyObject *
graph_call(PyObject *op, PyObject *const *slots, size_t nargsf, PyObject *kwnames)
{
    GraphCallObject *self = (GraphCallObject *)Py_NewRef(op);
    PyObject *result = NULL;
    PyObject *outputs = call_with(self, self->graph, NULL, &self->inputs, slots);
    if (outputs == NULL) {
        outputs = recovered(self, slots);
    }
    if (outputs == Py_None && self->again != NULL) {
        result = call_with(self, self->again, NULL, &self->flat, slots);
    }
    else if (outputs != NULL && self->rest != NULL) {
        result = call_with(self, self->rest, outputs, &self->chosen, slots);
    }
    else if (outputs != NULL) {
        result = one_output(self, outputs);
    }
    Py_XDECREF(outputs);
    Py_DECREF(self);
    return result;
}

static int
choice_init(GraphCallObject *self, Choice *choice, PyObject *indices, Py_ssize_t nslots)
{
    Py_ssize_t count = PyTuple_GET_SIZE(indices);
    choice->at = PyMem_Calloc((size_t)count + 1, sizeof(int32_t));
    if (choice->at == NULL) {
        PyErr_NoMemory();
        return -1;
    }
    choice->count = count;
    for (Py_ssize_t i = 0; i < count; i++) {
        long at = PyLong_AsLong(PyTuple_GET_ITEM(indices, i));
        if (at >= nslots || -1 - at >= PyTuple_GET_SIZE(self->constants)) {
            PyErr_SetString(PyExc_IndexError, "no such slot or constant");
        }
        if (PyErr_Occurred()) {
            return -1;
        }
        choice->at[i] = (int32_t)at;
    }
    return 0;
}

static PyObject *
optional(PyObject *value)
{
    return value == Py_None ? NULL : Py_NewRef(value);
}

static PyObject *
graph_call_new(PyTypeObject *type, PyObject *args, PyObject *kwargs)
{
    static char *names[] = {"graph", "nslots", "constants", "inputs", "noutputs", "output", "rest",
                            "chosen", "recover", "again", "flat", NULL};
    PyObject *graph, *constants, *inputs, *rest, *chosen, *recover, *again, *flat;
    Py_ssize_t nslots, noutputs, output;
    if (!PyArg_ParseTupleAndKeywords(args, kwargs, "OnO!O!nnOO!OOO!", names, &graph, &nslots,
                                     &PyTuple_Type, &constants, &PyTuple_Type, &inputs, &noutputs,
                                     &output, &rest, &PyTuple_Type, &chosen, &recover, &again,
                                     &PyTuple_Type, &flat)) {
        return NULL;
    }
    GraphCallObject *self = (GraphCallObject *)type->tp_alloc(type, 0); /* zeroed */
    if (self == NULL) {
        return NULL;
    }
    self->vectorcall = graph_call;
    self->graph = Py_NewRef(graph);
    self->constants = Py_NewRef(constants);
    self->noutputs = noutputs;
    self->output = output;
    self->rest = optional(rest);
    self->recover = optional(recover);
    self->again = optional(again);
    if (choice_init(self, &self->inputs, inputs, nslots) < 0
        || choice_init(self, &self->chosen, chosen, nslots) < 0
        || choice_init(self, &self->flat, flat, nslots) < 0) {
        Py_CLEAR(self);
    }
    return (PyObject *)self;
}

static int
graph_call_traverse(GraphCallObject *self, visitproc visit, void *arg)
{
    Py_VISIT(self->graph);
    Py_VISIT(self->constants);
    Py_VISIT(self->rest);
    Py_VISIT(self->recover);
    Py_VISIT(self->again);
    return 0;
}

/* No tp_clear: a call relies on all of it, and no cycle is made of such objects alone. */
static void
graph_call_dealloc(GraphCallObject *self)
{
    PyObject_GC_UnTrack(self);
    PyMem_Free(self->inputs.at);
    PyMem_Free(self->chosen.at);
    PyMem_Free(self->flat.at);
    Py_XDECREF(self->graph);
    Py_XDECREF(self->constants);
    Py_XDECREF(self->rest);
    Py_XDECREF(self->recover);
    Py_XDECREF(self->again);
    Py_TYPE(self)->tp_free(self);
}

PyTypeObject GraphCall_Type = {
    PyVarObject_HEAD_INIT(NULL, 0)
    .tp_name = "dynacap.guards._fastcheck.GraphCall",
    .tp_doc = "An entry's function that calls the graph itself.",
    .tp_basicsize = sizeof(GraphCallObject),
    .tp_flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_HAVE_GC | Py_TPFLAGS_HAVE_VECTORCALL,
    .tp_new = graph_call_new,
    .tp_dealloc = (destructor)graph_call_dealloc,
    .tp_traverse = (traverseproc)graph_call_traverse,
    .tp_call = PyVectorcall_Call,
    .tp_vectorcall_offset = offsetof(GraphCallObject, vectorcall),
};
