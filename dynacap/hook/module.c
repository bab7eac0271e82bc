/* dynacap.hook._chook: only the glue between Python and the parts; described in _chook.pyi. */
#include "activation.h"
#include "active.h"
#include "code_cache.h"
#include "compiled_function.h"
#include "eval_hook.h"
#include "generator_state.h"
#include "module_call.h"
#include "trampoline.h"

static PyObject *
enter(PyObject *module, PyObject *args)
{
    PyObject *callback;
    int frames = 0;
    if (!PyArg_ParseTuple(args, "O|i", &callback, &frames)) {
        return NULL;
    }
    Py_ssize_t token = activation_enter(callback == Py_None ? NULL : callback, frames,
                                        RECURSION_OF_C_CALL);
    return token < 0 ? NULL : PyLong_FromSsize_t(token);
}

static PyObject *
leave(PyObject *module, PyObject *token)
{
    Py_ssize_t value = PyLong_AsSsize_t(token);
    if ((value == -1 && PyErr_Occurred()) || activation_exit(value) < 0) {
        return NULL;
    }
    Py_RETURN_NONE;
}

/* The argument (borrowed) as a code object, borrowed; NULL with an error. */
static PyCodeObject *
code_argument(PyObject *argument)
{
    if (!PyCode_Check(argument)) {
        PyErr_Format(PyExc_TypeError, "expected a code object, not %R", argument);
        return NULL;
    }
    return (PyCodeObject *)argument;
}

static PyObject *
mark_never(PyObject *module, PyObject *argument)
{
    PyCodeObject *code = code_argument(argument);
    if (code == NULL || code_mark_never(code) < 0) {
        return NULL;
    }
    Py_RETURN_NONE;
}

static PyObject *
is_marked(PyObject *module, PyObject *argument)
{
    PyCodeObject *code = code_argument(argument);
    return code == NULL ? NULL : PyBool_FromLong(code_is_never(code_note_find(code)));
}

static PyObject *
clear_marks(PyObject *module, PyObject *unused)
{
    code_clear_marks();
    Py_RETURN_NONE;
}

static PyObject *
mark_hidden(PyObject *module, PyObject *argument)
{
    PyCodeObject *code = code_argument(argument);
    CodeNote *note = code == NULL ? NULL : code_note(code);
    if (note == NULL) {
        return NULL;
    }
    note->hidden = 1;
    Py_RETURN_NONE;
}

static PyObject *
frames_left(PyObject *module, PyObject *unused)
{
    return PyLong_FromLong(activation_frames_left());
}

static PyObject *
set_suspend_type(PyObject *module, PyObject *type)
{
    if (type != Py_None && !PyType_Check(type)) {
        PyErr_Format(PyExc_TypeError, "expected a class or None, not %R", type);
        return NULL;
    }
    PyTypeObject *suspend_type = type == Py_None ? NULL : (PyTypeObject *)type;
    compiled_function_set_suspend_type(suspend_type);
    trampoline_set_suspend_type(suspend_type);
    Py_RETURN_NONE;
}

static PyObject *
configure(PyObject *module, PyObject *args)
{
    PyObject *never, *reporter;
    if (!PyArg_ParseTuple(args, "OO:configure", &never, &reporter)) {
        return NULL;
    }
    Py_XSETREF(hook_never, Py_NewRef(never));
    hook_set_reporter(reporter);
    Py_RETURN_NONE;
}

static PyObject *
is_active(PyObject *module, PyObject *unused)
{
    return PyBool_FromLong(hook_thread.callback != NULL);
}

static PyObject *
is_installed(PyObject *module, PyObject *unused)
{
    return PyBool_FromLong(evaluator_is_installed());
}

static PyObject *
after_fork(PyObject *module, PyObject *unused)
{
    activation_after_fork();
    Py_RETURN_NONE;
}

/* Make a type of the module's and add it under `name`; it, owned, NULL with an error. */
static PyObject *
add_type(PyObject *module, PyType_Spec *spec, const char *name)
{
    PyObject *type = PyType_FromModuleAndSpec(module, spec, NULL);
    if (type != NULL && PyModule_AddObjectRef(module, name, type) < 0) {
        Py_CLEAR(type);
    }
    return type;
}

static int
module_exec(PyObject *module)
{
    if (PyInterpreterState_Get() != PyInterpreterState_Main()) {
        PyErr_SetString(PyExc_ImportError, "the frame hook serves the main interpreter only");
        return -1;
    }
    if (code_cache_init() < 0) {
        return -1;
    }
    PyObject *compiled = add_type(module, &compiled_function_spec, "CompiledFunction");
    PyObject *module_call = add_type(module, &module_call_spec, "ModuleCall");
    PyObject *active = add_type(module, &active_spec, "Active");
    PyObject *path = add_type(module, &path_spec, "Path");
    PyObject *trampoline = add_type(module, &trampoline_spec, "Trampoline");
    int status = compiled == NULL || module_call == NULL || active == NULL || path == NULL
                         || trampoline == NULL
                     ? -1
                     : 0;
    if (status == 0) {
        compiled_function_set_type((PyTypeObject *)compiled);
        trampoline_set_types((PyTypeObject *)path, (PyTypeObject *)trampoline);
    }
    Py_XDECREF(module_call);
    Py_XDECREF(path);
    Py_XDECREF(trampoline);
    Py_XDECREF(compiled);
    Py_XDECREF(active);
    return status;
}

static PyMethodDef methods[] = {
    {"enter", enter, METH_VARARGS, NULL},
    {"exit", leave, METH_O, NULL},
    {"mark_never", mark_never, METH_O, NULL},
    {"is_marked", is_marked, METH_O, NULL},
    {"clear_marks", clear_marks, METH_NOARGS, NULL},
    {"mark_hidden", mark_hidden, METH_O, NULL},
    {"frames_left", frames_left, METH_NOARGS, NULL},
    {"set_suspend_type", set_suspend_type, METH_O, NULL},
    {"configure", configure, METH_VARARGS, NULL},
    {"is_active", is_active, METH_NOARGS, NULL},
    {"is_installed", is_installed, METH_NOARGS, NULL},
    {"after_fork", after_fork, METH_NOARGS, NULL},
    {"read_generator", read_generator, METH_VARARGS, NULL},
    {"write_generator", write_generator, METH_VARARGS, NULL},
    {NULL},
};

static PyModuleDef_Slot slots[] = {
    {Py_mod_exec, module_exec},
    {0, NULL},
};

static struct PyModuleDef definition = {
    PyModuleDef_HEAD_INIT,
    .m_name = "dynacap.hook._chook",
    .m_doc = "The frame hook and compiled functions in C.",
    .m_size = 0,
    .m_methods = methods,
    .m_slots = slots,
};

PyMODINIT_FUNC
PyInit__chook(void)
{
    return PyModuleDef_Init(&definition);
}
