#include "module_call.h"

#include <structmember.h>

enum { FEW = 16 };

typedef struct {
    PyObject_HEAD
    vectorcallfunc vectorcall;
    PyObject *function; /* owned: a Python function that does the same */
    PyObject *slot;     /* owned: the attribute of a compiled module that holds (module, call, …) */
} ModuleCall;

/* call(module, ...) in place of self(...). */
static PyObject *
redirected(PyObject *state, PyObject *const *args, Py_ssize_t nargs, PyObject *kwnames)
{
    Py_ssize_t count = nargs + (kwnames == NULL ? 0 : PyTuple_GET_SIZE(kwnames));
    PyObject *few[FEW], **all = count + 1 > FEW ? PyMem_New(PyObject *, count + 1) : few;
    if (all == NULL) {
        return PyErr_NoMemory();
    }
    PyObject **values = all + 1; /* one before the arguments is for the callee to use */
    memcpy(values, args, (size_t)count * sizeof(PyObject *));
    values[0] = PyTuple_GET_ITEM(state, 0);
    PyObject *result = PyObject_Vectorcall(PyTuple_GET_ITEM(state, 1), values,
                                           (size_t)nargs | PY_VECTORCALL_ARGUMENTS_OFFSET, kwnames);
    if (all != few) {
        PyMem_Free(all);
    }
    return result;
}

static PyObject *
module_call(PyObject *op, PyObject *const *args, size_t nargsf, PyObject *kwnames)
{
    ModuleCall *self = (ModuleCall *)op;
    Py_ssize_t nargs = PyVectorcall_NARGS(nargsf);
    PyObject *state = nargs == 0 ? NULL : PyObject_GetAttr(args[0], self->slot), *result;
    if (state == NULL || !PyTuple_Check(state) || PyTuple_GET_SIZE(state) < 2) {
        PyErr_Clear(); /* the function says what is wrong */
        result = PyObject_Vectorcall(self->function, args, nargsf, kwnames);
    }
    else {
        result = redirected(state, args, nargs, kwnames);
    }
    Py_XDECREF(state);
    return result;
}

static PyObject *
module_call_new(PyTypeObject *type, PyObject *args, PyObject *kwargs)
{
    PyObject *function, *slot;
    static char *names[] = {"function", "slot", NULL};
    if (!PyArg_ParseTupleAndKeywords(args, kwargs, "O!U:ModuleCall", names, &PyFunction_Type,
                                     &function, &slot)) {
        return NULL;
    }
    ModuleCall *self = (ModuleCall *)type->tp_alloc(type, 0);
    if (self != NULL) {
        self->vectorcall = module_call;
        self->function = Py_NewRef(function);
        self->slot = Py_NewRef(slot);
    }
    return (PyObject *)self;
}

static int
module_call_traverse(PyObject *op, visitproc visit, void *arg)
{
    Py_VISIT(Py_TYPE(op));
    Py_VISIT(((ModuleCall *)op)->function);
    return 0;
}

/* No tp_clear: calls count on the function, which can break its own cycles. */
static void
module_call_dealloc(PyObject *op)
{
    PyTypeObject *type = Py_TYPE(op);
    PyObject_GC_UnTrack(op);
    Py_XDECREF(((ModuleCall *)op)->function);
    Py_XDECREF(((ModuleCall *)op)->slot);
    type->tp_free(op);
    Py_DECREF(type);
}

/* A method of an instance, as functions bind. */
static PyObject *
module_call_get(PyObject *op, PyObject *instance, PyObject *owner)
{
    if (instance == NULL || instance == Py_None) {
        return Py_NewRef(op);
    }
    return PyMethod_New(op, instance);
}

static PyObject *
get_through(PyObject *op, void *name)
{
    return PyObject_GetAttrString(((ModuleCall *)op)->function, name);
}

static PyGetSetDef getset[] = {
    {"__name__", get_through, NULL, NULL, "__name__"},
    {"__qualname__", get_through, NULL, NULL, "__qualname__"},
    {"__module__", get_through, NULL, NULL, "__module__"},
    {NULL},
};

static PyMemberDef members[] = {
    {"function", T_OBJECT_EX, offsetof(ModuleCall, function), READONLY,
     "The Python function that does the same."},
    {"__wrapped__", T_OBJECT_EX, offsetof(ModuleCall, function), READONLY, NULL},
    {"__vectorcalloffset__", T_PYSSIZET, offsetof(ModuleCall, vectorcall), READONLY, NULL},
    {NULL},
};

static PyType_Slot slots[] = {
    {Py_tp_doc, "The __call__ of compiled modules."},
    {Py_tp_new, module_call_new},
    {Py_tp_call, PyVectorcall_Call},
    {Py_tp_descr_get, module_call_get},
    {Py_tp_traverse, module_call_traverse},
    {Py_tp_dealloc, module_call_dealloc},
    {Py_tp_getset, getset},
    {Py_tp_members, members},
    {0, NULL},
};

PyType_Spec module_call_spec = {
    .name = "dynacap.hook._chook.ModuleCall",
    .basicsize = sizeof(ModuleCall),
    .flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_HAVE_GC | Py_TPFLAGS_HAVE_VECTORCALL
             | Py_TPFLAGS_METHOD_DESCRIPTOR,
    .slots = slots,
};
