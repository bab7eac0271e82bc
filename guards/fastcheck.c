/* The module dynacap.guards._fastcheck: glue alone. */
#include "entry_table.h"
#include "graph_call.h"

static PyMethodDef module_methods[] = {
    {"bind_torch", bind_torch, METH_O,
     "bind_torch(torch, /)\n--\n\nLook up the accessors that tensor guards need."},
    {"find_tensor_layout", find_tensor_layout, METH_VARARGS,
     "find_tensor_layout(samples, negative, conjugate, leaves, /)\n--\n\n"
     "Find out where torch keeps a tensor's metadata: whether the dispatch keys were found, the\n"
     "dimensions, and requires_grad."},
    {NULL, NULL, 0, NULL},
};

static struct PyModuleDef module_definition = {
    PyModuleDef_HEAD_INIT,
    .m_name = "dynacap.guards._fastcheck",
    .m_doc = "The guard checker and the table of entries, in C.",
    .m_size = -1,
    .m_methods = module_methods,
};

PyMODINIT_FUNC
PyInit__fastcheck(void)
{
    if (raw_reads_init() < 0) {
        return NULL;
    }
    PyObject *module = PyModule_Create(&module_definition);
    if (module == NULL) {
        return NULL;
    }
    if (PyModule_AddType(module, &Checker_Type) < 0 || PyModule_AddType(module, &Entry_Type) < 0
        || PyModule_AddType(module, &EntryTable_Type) < 0
        || PyModule_AddType(module, &GraphCall_Type) < 0
        || PyModule_AddIntMacro(module, HAVE_DICT_TAG) < 0) {
        Py_DECREF(module);
        return NULL;
    }
    return module;
}
