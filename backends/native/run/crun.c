/* The module _crun. */
#include "graph.h"

#include <string.h>

static PyObject *
attach(PyObject *module, PyObject *args)
{
    const char *libtorch_cpu, *libtorch_python;
    PyObject *type;
    Py_ssize_t offset;
    if (!PyArg_ParseTuple(args, "ssO!n", &libtorch_cpu, &libtorch_python, &PyType_Type, &type,
                          &offset)) {
        return NULL;
    }
    if (torch_find(libtorch_cpu, libtorch_python) < 0) {
        return NULL;
    }
    tensor_type = (PyTypeObject *)Py_NewRef(type);
    tensor_impl_offset = offset;
    return Py_NewRef(Py_None);
}

/* The first offset at which each tensor holds its own address; -1: there is none. */
static PyObject *
find_word(PyObject *module, PyObject *args)
{
    PyObject *tensors, *addresses;
    if (!PyArg_ParseTuple(args, "O!O!", &PyTuple_Type, &tensors, &PyTuple_Type, &addresses)) {
        return NULL;
    }
    Py_ssize_t count = PyTuple_GET_SIZE(tensors);
    Py_ssize_t end = count ? Py_TYPE(PyTuple_GET_ITEM(tensors, 0))->tp_basicsize : 0;
    for (Py_ssize_t at = sizeof(PyObject); at + (Py_ssize_t)sizeof(uintptr_t) <= end;
         at += sizeof(uintptr_t)) {
        Py_ssize_t i = 0;
        for (; i < count; i++) {
            uintptr_t word, wanted = PyLong_AsSize_t(PyTuple_GET_ITEM(addresses, i));
            memcpy(&word, (char *)PyTuple_GET_ITEM(tensors, i) + at, sizeof(word));
            if (word != wanted) {
                break;
            }
        }
        if (i == count) {
            return PyLong_FromSsize_t(at);
        }
    }
    return PyErr_Occurred() ? NULL : PyLong_FromLong(-1);
}

static PyMethodDef methods[] = {
    {"attach", attach, METH_VARARGS,
     "Find libtorch's functions; say what a tensor is and where its TensorImpl's address lies."},
    {"find_word", find_word, METH_VARARGS,
     "The first offset at which each object holds the number given for it, or -1."},
    {NULL, NULL, 0, NULL},
};

static PyModuleDef definition = {
    PyModuleDef_HEAD_INIT,
    .m_name = "_crun",
    .m_doc = "Runs compiled graphs.",
    .m_size = -1,
    .m_methods = methods,
};

PyMODINIT_FUNC
PyInit__crun(void)
{
    PyObject *module = PyModule_Create(&definition);
    if (module != NULL && PyModule_AddType(module, &Graph_Type) < 0) {
        Py_CLEAR(module);
    }
    return module;
}
