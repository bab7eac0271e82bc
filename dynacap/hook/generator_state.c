/* The frame of a generator or coroutine that is not running: what its slots and its stack hold, and
 * where it stands.  One that is handling an exception is left alone, for that is no part of its
 * frame. */
#include "generator_state.h"

/* Whether the frame may be looked at: 1 suspended at a yield, 0 not started, -1 neither. */
static int
standing(PyObject *object)
{
    if (!PyGen_CheckExact(object) && !PyCoro_CheckExact(object)) {
        return -1;
    }
    PyObject *handled = ((PyGenObject *)object)->gi_exc_state.exc_value;
    return handled == NULL || handled == Py_None ? generator_standing(object) : -1;
}

PyObject *
read_generator(PyObject *module, PyObject *args)
{
    PyObject *generator, *missing;
    if (!PyArg_ParseTuple(args, "OO:read_generator", &generator, &missing)) {
        return NULL;
    }
    int state = standing(generator);
    if (state < 0) {
        Py_RETURN_NONE;
    }
    Frame *frame = generator_frame(generator);
    PyCodeObject *code = frame_code(frame);
    Py_ssize_t count = code->co_nlocalsplus + frame_depth(frame, code);
    PyObject *held = PyTuple_New(count);
    if (held == NULL) {
        return NULL;
    }
    for (Py_ssize_t i = 0; i < count; i++) {
        PyObject *item = frame_local(frame, i);
        PyTuple_SET_ITEM(held, i, Py_NewRef(item == NULL ? missing : item));
    }
    return Py_BuildValue("OOnnN", code, frame_function(frame),
                         state ? 2 * generator_at(frame, code) : (Py_ssize_t)-1,
                         (Py_ssize_t)code->co_nlocalsplus, held);
}

/* Whether a state that is to be written fits the code; 0 with an error. */
static int
fits(PyCodeObject *code, Py_ssize_t at, PyObject *changes, PyObject *stack)
{
    Py_ssize_t place = 0;
    PyObject *key, *value;
    int good = at >= 0 && at < Py_SIZE(code) && PyTuple_GET_SIZE(stack) <= code->co_stacksize;
    while (good && PyDict_Next(changes, &place, &key, &value)) {
        Py_ssize_t slot = PyLong_AsSsize_t(key);
        good = slot >= 0 && slot < code->co_nlocalsplus;
    }
    if (!good && !PyErr_Occurred()) {
        PyErr_SetString(PyExc_ValueError, "no state of this generator");
    }
    return good;
}

PyObject *
write_generator(PyObject *module, PyObject *args)
{
    PyObject *generator, *changes, *stack, *missing;
    Py_ssize_t lasti;
    int delegates;
    if (!PyArg_ParseTuple(args, "OnpO!O!O:write_generator", &generator, &lasti, &delegates,
                          &PyDict_Type, &changes, &PyTuple_Type, &stack, &missing)) {
        return NULL;
    }
    if (standing(generator) < 0) {
        PyErr_Format(PyExc_ValueError, "%R is no generator that waits", generator);
        return NULL;
    }
    Frame *frame = generator_frame(generator);
    PyCodeObject *code = frame_code(frame);
    if (!fits(code, lasti / 2, changes, stack)) {
        return NULL;
    }
    Py_ssize_t first = code->co_nlocalsplus, depth = frame_depth(frame, code);
    Py_ssize_t room = PyDict_GET_SIZE(changes) + depth, dropped = 0;
    PyObject **old = PyMem_Calloc(room + 1, sizeof(PyObject *));
    if (old == NULL) {
        return PyErr_NoMemory();
    }
    Py_ssize_t place = 0;
    PyObject *key, *value;
    while (PyDict_Next(changes, &place, &key, &value)) {
        PyObject *item = value == missing ? NULL : Py_NewRef(value);
        old[dropped++] = frame_swap_slot(frame, PyLong_AsSsize_t(key), item);
    }
    for (Py_ssize_t i = 0; i < depth; i++) {
        old[dropped++] = frame_swap_slot(frame, first + i, NULL);
    }
    frame_set_depth(frame, code, PyTuple_GET_SIZE(stack));
    for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(stack); i++) {
        PyObject *item = PyTuple_GET_ITEM(stack, i);
        frame_swap_slot(frame, first + i, item == missing ? NULL : Py_NewRef(item));
    }
    generator_put(generator, code, lasti / 2, delegates);
    while (dropped > 0) { /* now that all is in its place: this may run code of anyone's */
        Py_XDECREF(old[--dropped]);
    }
    PyMem_Free(old);
    return Py_NewRef(generator);
}
