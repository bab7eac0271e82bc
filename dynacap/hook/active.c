#include "active.h"
#include "activation.h"

static PyObject *
active_new(PyTypeObject *type, PyObject *args, PyObject *kwargs)
{
    static char *names[] = {"callback", NULL};
    PyObject *callback;
    if (!PyArg_ParseTupleAndKeywords(args, kwargs, "O:active", names, &callback)) {
        return NULL;
    }
    Active *self = (Active *)type->tp_alloc(type, 0);
    if (self != NULL) {
        self->callback = callback == Py_None ? NULL : Py_NewRef(callback);
        self->token = -1;
    }
    return (PyObject *)self;
}

static PyObject *
active_enter(PyObject *op, PyObject *unused)
{
    Active *self = (Active *)op;
    if (self->token >= 0) {
        PyErr_SetString(PyExc_RuntimeError, "this activation is entered already; make another");
        return NULL;
    }
    self->token = activation_enter(self->callback, 0, RECURSION_OF_C_CALL);
    return self->token < 0 ? NULL : Py_NewRef(op);
}

static PyObject *
active_exit(PyObject *op, PyObject *unused)
{
    Active *self = (Active *)op;
    Py_ssize_t token = self->token;
    self->token = -1;
    if (activation_exit(token) < 0) {
        return NULL;
    }
    Py_RETURN_NONE;
}

static int
active_traverse(PyObject *op, visitproc visit, void *arg)
{
    Py_VISIT(Py_TYPE(op));
    Py_VISIT(((Active *)op)->callback);
    return 0;
}

static int
active_clear(PyObject *op)
{
    Py_CLEAR(((Active *)op)->callback);
    return 0;
}

static void
active_dealloc(PyObject *op)
{
    PyTypeObject *type = Py_TYPE(op);
    PyObject_GC_UnTrack(op);
    active_clear(op);
    type->tp_free(op);
    Py_DECREF(type);
}

static PyMethodDef methods[] = {
    {"__enter__", active_enter, METH_NOARGS, NULL},
    {"__exit__", active_exit, METH_VARARGS, NULL},
    {NULL},
};

static PyType_Slot slots[] = {
    {Py_tp_doc, "While entered, frames of this thread are offered to the callback."},
    {Py_tp_new, active_new},
    {Py_tp_traverse, active_traverse},
    {Py_tp_clear, active_clear},
    {Py_tp_dealloc, active_dealloc},
    {Py_tp_methods, methods},
    {0, NULL},
};

PyType_Spec active_spec = {
    .name = "dynacap.hook._chook.Active",
    .basicsize = sizeof(Active),
    .flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_HAVE_GC,
    .slots = slots,
};
