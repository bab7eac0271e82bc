/* _crun.Graph: a compiled graph.  A call reads the tensors' addresses out of the arguments, runs
 * the library's one function without the GIL, and wraps what it gives.
 *
 * Until the library is there, pending(graph, arguments) decides what runs; it also runs what has
 * integers that are too large for C, and what failed before it changed anything, so that eager
 * PyTorch says what is wrong, or that nothing is.
 */
#include "graph.h"

#include "host.h"

#include <dlfcn.h>
#include <stddef.h>
#include <string.h>

Py_ssize_t tensor_impl_offset;
PyTypeObject *tensor_type;

typedef int (*Run)(Graph *, Tensor *, const int64_t *, Tensor *, int64_t *);

struct import {
    const char *name;
    void **where;
};

enum { FEW = 64 };
enum { EAGERLY = 2 }; /* what `run` gives if it came to no result and has changed nothing */

struct graph_ {
    PyObject_HEAD
    vectorcallfunc vectorcall;
    Run run; /* NULL until the library is loaded */
    void *library;
    PyObject *pending;   /* owned; pending(self, args) is the call while `run` is NULL */
    PyObject *make_step;  /* owned; make_step(index) is the callable for one step */
    PyObject *steps;      /* owned dict: those made already */
    PyObject *inputs;     /* owned bytes: 't' a tensor, 's' a size, 'f' a float, '-' not read */
    PyObject *outputs;    /* owned tuple: None a tensor, a type a number, else the value itself */
    PyObject *constants;  /* owned tuple of tensors */
    Py_ssize_t ntensors, nnumbers, nconstants;
};

static inline uintptr_t
impl_of(PyObject *tensor)
{
    return *(uintptr_t *)((char *)tensor + tensor_impl_offset);
}

/* Fill in where the arguments are; -1 with an exception set for what is no tensor, or no number. */
static int
read_arguments(Graph *self, PyObject *const *args, Py_ssize_t nargs, uintptr_t *impls,
               int64_t *numbers)
{
    const char *kinds = PyBytes_AS_STRING(self->inputs);
    if (nargs != PyBytes_GET_SIZE(self->inputs)) {
        PyErr_Format(PyExc_TypeError, "this graph takes %zd values, got %zd",
                     PyBytes_GET_SIZE(self->inputs), nargs);
        return -1;
    }
    for (Py_ssize_t i = 0; i < nargs; i++) {
        if (kinds[i] == 't') {
            if (!PyObject_TypeCheck(args[i], tensor_type)) {
                PyErr_Format(PyExc_TypeError, "value %zd is a %s, not a tensor", i,
                             Py_TYPE(args[i])->tp_name);
                return -1;
            }
            *impls++ = impl_of(args[i]);
        }
        else if (kinds[i] == 's') {
            *numbers = PyLong_AsLongLong(args[i]);
            if (*numbers++ == -1 && PyErr_Occurred()) {
                return -1;
            }
        }
        else if (kinds[i] == 'f') {
            double number = PyFloat_AsDouble(args[i]);
            if (number == -1 && PyErr_Occurred()) {
                return -1;
            }
            memcpy(numbers++, &number, sizeof(number));
        }
    }
    for (Py_ssize_t i = 0; i < self->nconstants; i++) {
        *impls++ = impl_of(PyTuple_GET_ITEM(self->constants, i));
    }
    return 0;
}

static void
drop_all(Tensor *tensors, Py_ssize_t count)
{
    for (Py_ssize_t i = 0; i < count; i++) {
        if (tensors[i] != NULL) {
            torch.delete_tensor(tensors[i]);
        }
    }
}

static PyObject *
output(PyObject *kind, Tensor tensor, int64_t number)
{
    if (kind == Py_None) {
        return torch.wrap(tensor);
    }
    if (kind == (PyObject *)&PyFloat_Type) {
        double value;
        memcpy(&value, &number, sizeof(value));
        return PyFloat_FromDouble(value);
    }
    return PyType_Check(kind) ? PyLong_FromLongLong(number) : Py_NewRef(PyTuple_GET_ITEM(kind, 0));
}

static PyObject *
results(Graph *self, Tensor *tensors, const int64_t *numbers)
{
    Py_ssize_t count = PyTuple_GET_SIZE(self->outputs);
    PyObject *made = PyTuple_New(count);
    for (Py_ssize_t i = 0; made != NULL && i < count; i++) {
        PyObject *item = output(PyTuple_GET_ITEM(self->outputs, i), tensors[i], numbers[i]);
        if (item == NULL) {
            Py_CLEAR(made);
        }
        else {
            PyTuple_SET_ITEM(made, i, item);
        }
    }
    return made;
}

static PyObject *
call_pending(Graph *self, PyObject *const *args, Py_ssize_t nargs)
{
    PyObject *values = PyTuple_New(nargs), *made = NULL;
    for (Py_ssize_t i = 0; values != NULL && i < nargs; i++) {
        PyTuple_SET_ITEM(values, i, Py_NewRef(args[i]));
    }
    if (values != NULL) {
        made = PyObject_CallFunctionObjArgs(self->pending, (PyObject *)self, values, NULL);
        Py_DECREF(values);
    }
    return made;
}

/* Drop the exception of a step in Python; 0 for one that is no matter of the graph's. */
static int
may_go_on(void)
{
    if (PyErr_Occurred() && !PyErr_ExceptionMatches(PyExc_Exception)) {
        return 0;
    }
    PyErr_Clear();
    return 1;
}

static PyObject *
run_library(Graph *self, PyObject *const *args, Py_ssize_t nargs, char *room)
{
    Py_ssize_t nin = self->ntensors + self->nconstants, nout = PyTuple_GET_SIZE(self->outputs);
    Tensor *in = (Tensor *)room, *out = in + nin;
    uintptr_t *impls = (uintptr_t *)(out + nout);
    int64_t *given = (int64_t *)(impls + nin), *numbers = given + self->nnumbers;
    if (read_arguments(self, args, nargs, impls, given) < 0) {
        if (!PyErr_ExceptionMatches(PyExc_OverflowError)) {
            return NULL;
        }
        PyErr_Clear();
        return call_pending(self, args, nargs);
    }
    for (Py_ssize_t i = 0; i < nin; i++) {
        in[i] = (Tensor)&impls[i];
    }
    for (Py_ssize_t i = 0; i < nout; i++) {
        out[i] = NULL;
        numbers[i] = 0;
    }
    PyThreadState *state = PyEval_SaveThread();
    int failed = self->run(self, in, given, out, numbers);
    PyEval_RestoreThread(state);
    PyObject *made = NULL;
    if (!failed) {
        made = results(self, out, numbers);
    }
    else if (failed == EAGERLY && may_go_on()) {
        made = call_pending(self, args, nargs);
    }
    else if (!PyErr_Occurred()) {
        PyErr_SetString(PyExc_RuntimeError, torch.what());
    }
    drop_all(out, nout);
    return made;
}

static PyObject *
graph_call(PyObject *op, PyObject *const *args, size_t nargsf, PyObject *kwnames)
{
    Graph *self = (Graph *)op;
    Py_ssize_t nargs = PyVectorcall_NARGS(nargsf);
    if (self->run == NULL) {
        return call_pending(self, args, nargs);
    }
    Py_ssize_t words = 2 * (self->ntensors + self->nconstants) + self->nnumbers
                       + 2 * PyTuple_GET_SIZE(self->outputs);
    uint64_t few[FEW];
    char *room = words <= FEW ? (char *)few : PyMem_Malloc((size_t)words * sizeof(uint64_t));
    if (room == NULL) {
        return PyErr_NoMemory();
    }
    Py_INCREF(self);
    PyObject *made = run_library(self, args, nargs, room);
    Py_DECREF(self);
    if (room != (char *)few) {
        PyMem_Free(room);
    }
    return made;
}

/* Steps that run in Python. */

static PyObject *
step(Graph *self, int index)
{
    PyObject *key = PyLong_FromLong(index), *made = NULL;
    if (key == NULL) {
        return NULL;
    }
    made = Py_XNewRef(PyDict_GetItemWithError(self->steps, key));
    if (made == NULL && !PyErr_Occurred()) {
        made = PyObject_CallOneArg(self->make_step, key);
        if (made != NULL && PyDict_SetItem(self->steps, key, made) < 0) {
            Py_CLEAR(made);
        }
    }
    Py_DECREF(key);
    return made;
}

/* The tuple that a step gives for these tensors and sizes. */
static PyObject *
step_results(Graph *self, int index, int count, Tensor *tensors, int nsizes, int64_t *sizes)
{
    PyObject *function = step(self, index), *args = PyTuple_New(count + nsizes), *made = NULL;
    for (int i = 0; args != NULL && i < count + nsizes; i++) {
        PyObject *arg = i < count ? torch.wrap(tensors[i]) : PyLong_FromLongLong(sizes[i - count]);
        if (arg == NULL) {
            Py_CLEAR(args);
            break;
        }
        PyTuple_SET_ITEM(args, i, arg);
    }
    if (function != NULL && args != NULL) {
        made = PyObject_CallObject(function, args);
    }
    Py_XDECREF(args);
    Py_XDECREF(function);
    if (made != NULL && !PyTuple_Check(made)) {
        PyErr_SetString(PyExc_TypeError, "a step gives a tuple");
        Py_CLEAR(made);
    }
    return made;
}

static int
take_results(PyObject *given, int count, Tensor **results)
{
    for (int i = 0; i < count && i < PyTuple_GET_SIZE(given); i++) {
        PyObject *item = PyTuple_GET_ITEM(given, i);
        if (results[i] == NULL) {
            continue;
        }
        if (!PyObject_TypeCheck(item, tensor_type)) {
            PyErr_SetString(PyExc_TypeError, "a step gave something that is no tensor");
            return -1;
        }
        uintptr_t impl = impl_of(item);
        torch.new_handle((Tensor)&impl, results[i]);
    }
    return 0;
}

int
graph_python(Graph *self, int index, int count, Tensor *tensors, int nsizes, int64_t *sizes,
             int nresults, Tensor **results)
{
    PyGILState_STATE gil = PyGILState_Ensure();
    PyObject *given = step_results(self, index, count, tensors, nsizes, sizes);
    int failed = given == NULL || take_results(given, nresults, results) < 0;
    Py_XDECREF(given);
    PyGILState_Release(gil);
    return failed;
}

/* Making one. */

static PyObject *
graph_new(PyTypeObject *type, PyObject *args, PyObject *kwargs)
{
    static char *names[] = {"pending", "make_step", "inputs", "outputs", "constants", NULL};
    PyObject *pending, *make_step, *inputs, *outputs, *constants;
    if (!PyArg_ParseTupleAndKeywords(args, kwargs, "OOO!O!O!", names, &pending, &make_step,
                                     &PyBytes_Type, &inputs, &PyTuple_Type, &outputs,
                                     &PyTuple_Type, &constants)) {
        return NULL;
    }
    Graph *self = (Graph *)type->tp_alloc(type, 0); /* zeroed */
    if (self == NULL) {
        return NULL;
    }
    self->vectorcall = graph_call;
    self->pending = Py_NewRef(pending);
    self->make_step = Py_NewRef(make_step);
    self->inputs = Py_NewRef(inputs);
    self->outputs = Py_NewRef(outputs);
    self->constants = Py_NewRef(constants);
    self->nconstants = PyTuple_GET_SIZE(constants);
    for (Py_ssize_t i = 0; i < PyBytes_GET_SIZE(inputs); i++) {
        self->ntensors += PyBytes_AS_STRING(inputs)[i] == 't';
        self->nnumbers += strchr("sf", PyBytes_AS_STRING(inputs)[i]) != NULL;
    }
    self->steps = PyDict_New();
    if (self->steps == NULL) {
        Py_CLEAR(self);
    }
    return (PyObject *)self;
}

static PyObject *
graph_load(PyObject *op, PyObject *arg)
{
    Graph *self = (Graph *)op;
    const char *path = PyUnicode_AsUTF8(arg);
    if (path == NULL || self->run != NULL) {
        return path == NULL ? NULL : Py_NewRef(Py_None);
    }
    void *library = dlopen(path, RTLD_NOW | RTLD_LOCAL);
    Run run = NULL;
    const struct import *imports = NULL;
    if (library != NULL) {
        *(void **)&run = dlsym(library, "run");
        imports = dlsym(library, "imports");
    }
    if (run == NULL || imports == NULL) {
        PyErr_Format(PyExc_ImportError, "%s cannot be loaded: %s", path, dlerror());
        goto failed;
    }
    for (; imports->name != NULL; imports++) {
        *imports->where = host_symbol(imports->name);
        if (*imports->where == NULL) {
            PyErr_Format(PyExc_ImportError, "%s needs %s, which torch lacks", path, imports->name);
            goto failed;
        }
    }
    self->library = library;
    self->run = run;
    return Py_NewRef(Py_None);
failed:
    if (library != NULL) {
        dlclose(library);
    }
    return NULL;
}

static PyObject *
graph_ready(PyObject *op, void *closure)
{
    return PyBool_FromLong(((Graph *)op)->run != NULL);
}

static int
graph_traverse(PyObject *op, visitproc visit, void *arg)
{
    Graph *self = (Graph *)op;
    Py_VISIT(self->pending);
    Py_VISIT(self->make_step);
    Py_VISIT(self->steps);
    Py_VISIT(self->outputs);
    Py_VISIT(self->constants);
    return 0;
}

static int
graph_clear(PyObject *op)
{
    Graph *self = (Graph *)op;
    Py_CLEAR(self->pending);
    Py_CLEAR(self->make_step);
    Py_CLEAR(self->steps);
    return 0;
}

static void
graph_dealloc(PyObject *op)
{
    Graph *self = (Graph *)op;
    PyObject_GC_UnTrack(op);
    graph_clear(op);
    Py_XDECREF(self->inputs);
    Py_XDECREF(self->outputs);
    Py_XDECREF(self->constants);
    if (self->library != NULL) {
        dlclose(self->library);
    }
    Py_TYPE(op)->tp_free(op);
}

static PyMethodDef graph_methods[] = {
    {"load", graph_load, METH_O, "Take up the library at this path; from now on calls run it."},
    {NULL, NULL, 0, NULL},
};

static PyGetSetDef graph_getset[] = {
    {"ready", graph_ready, NULL, "Whether calls run the library.", NULL},
    {NULL, NULL, NULL, NULL, NULL},
};

PyTypeObject Graph_Type = {
    PyVarObject_HEAD_INIT(NULL, 0)
    .tp_name = "dynacap.backends.native.run._crun.Graph",
    .tp_doc = "A compiled graph, callable with its inputs.",
    .tp_basicsize = sizeof(Graph),
    .tp_flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_HAVE_GC | Py_TPFLAGS_HAVE_VECTORCALL,
    .tp_new = graph_new,
    .tp_dealloc = graph_dealloc,
    .tp_traverse = graph_traverse,
    .tp_clear = graph_clear,
    .tp_methods = graph_methods,
    .tp_getset = graph_getset,
    .tp_call = PyVectorcall_Call,
    .tp_vectorcall_offset = offsetof(Graph, vectorcall),
};
