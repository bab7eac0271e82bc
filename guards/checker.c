/* _fastcheck.Checker: made from the description of a program; check(flat) walks it. */
#include "checker.h"

#include <structmember.h>

static PyObject *
checker_new(PyTypeObject *type, PyObject *args, PyObject *kwargs)
{
    PyObject *description;
    static char *names[] = {"description", NULL};
    if (!PyArg_ParseTupleAndKeywords(args, kwargs, "O!", names, &PyDict_Type, &description)) {
        return NULL;
    }
    CheckerObject *self = (CheckerObject *)type->tp_alloc(type, 0); /* zeroed */
    if (self != NULL && program_init(&self->program, description) < 0) {
        Py_CLEAR(self);
    }
    return (PyObject *)self;
}

static int
checker_traverse(CheckerObject *self, visitproc visit, void *arg)
{
    return program_visit(&self->program, visit, arg);
}

static int
checker_clear(CheckerObject *self)
{
    program_clear(&self->program);
    return 0;
}

static void
checker_dealloc(CheckerObject *self)
{
    PyObject_GC_UnTrack(self);
    program_clear(&self->program);
    Py_TYPE(self)->tp_free(self);
}

static PyObject *
checker_check(CheckerObject *self, PyObject *flat)
{
    if (!PyTuple_Check(flat)) {
        PyErr_SetString(PyExc_TypeError, "check() takes the flat vector as a tuple");
        return NULL;
    }
    Program *program = &self->program;
    PyObject **slots = PyMem_New(PyObject *, program->nslots + 1);
    if (slots == NULL) {
        return PyErr_NoMemory();
    }
    PyObject *values = NULL;
    int holds = program_run(program, &PyTuple_GET_ITEM(flat, 0), PyTuple_GET_SIZE(flat), slots);
    if (holds == 0) {
        values = Py_NewRef(Py_None);
    }
    else if (holds == 1) {
        Py_ssize_t count = program->nslots;
        values = PyTuple_New(count);
        for (Py_ssize_t i = 0; i < count; i++) {
            if (values == NULL) {
                Py_DECREF(slots[i]);
            }
            else {
                PyTuple_SET_ITEM(values, i, slots[i]);
            }
        }
    }
    PyMem_Free(slots);
    return values;
}

static PyObject *
checker_get_has_probe(CheckerObject *self, void *Py_UNUSED(closure))
{
    return PyBool_FromLong(self->program.state.probe != NULL);
}

static PyGetSetDef checker_fields[] = {
    {"has_probe", (getter)checker_get_has_probe, NULL,
     "Whether one call into torch answers most questions about its state.", NULL},
    {NULL, NULL, NULL, NULL, NULL},
};

static PyMemberDef checker_members[] = {
    {"recalled", T_PYSSIZET, offsetof(CheckerObject, program.recalled), READONLY,
     "How many checks were answered from what is remembered."},
    {NULL, 0, 0, 0, NULL},
};

static PyMethodDef checker_methods[] = {
    {"check", (PyCFunction)checker_check, METH_O,
     "check(flat, /)\n--\n\nThe slots' values if all guards hold, else None."},
    {NULL, NULL, 0, NULL},
};

PyTypeObject Checker_Type = {
    PyVarObject_HEAD_INIT(NULL, 0)
    .tp_name = "dynacap.guards._fastcheck.Checker",
    .tp_doc = "A program of checks, made from the description that lower.py writes.",
    .tp_basicsize = sizeof(CheckerObject),
    .tp_flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_HAVE_GC | Py_TPFLAGS_BASETYPE,
    .tp_new = checker_new,
    .tp_dealloc = (destructor)checker_dealloc,
    .tp_traverse = (traverseproc)checker_traverse,
    .tp_clear = (inquiry)checker_clear,
    .tp_methods = checker_methods,
    .tp_getset = checker_fields,
    .tp_members = checker_members,
};
