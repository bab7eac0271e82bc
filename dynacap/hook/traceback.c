#include "traceback.h"
#include "code_cache.h"
#include <frameobject.h>

/* The code of a traceback entry; owned. */
static PyCodeObject *
entry_code(PyTracebackObject *entry)
{
    return PyFrame_GetCode(entry->tb_frame);
}

static int
entry_is_hidden(PyTracebackObject *entry)
{
    PyCodeObject *code = entry_code(entry);
    CodeNote *note = code_note_find(code);
    Py_DECREF(code);
    return note != NULL && note->hidden;
}

static PyTracebackObject *
innermost(PyTracebackObject *entry)
{
    while (entry->tb_next != NULL) {
        entry = entry->tb_next;
    }
    return entry;
}

/* The chain from `entry` (owned, taken over; NULL: none) without its hidden entries; owned. */
static PyTracebackObject *
without_hidden(PyTracebackObject *entry)
{
    PyTracebackObject *first = entry;
    PyTracebackObject **link = &first;
    while (*link != NULL) {
        PyTracebackObject *here = *link;
        if (entry_is_hidden(here)) {
            *link = (PyTracebackObject *)Py_XNewRef(here->tb_next);
            Py_DECREF(here);
        }
        else {
            link = &here->tb_next;
        }
    }
    return first;
}

/* Pieces of a function have other code objects than it has, but keep its name and place. */
static int
same_place(PyCodeObject *a, PyCodeObject *b)
{
    return a == b
           || (a->co_firstlineno == b->co_firstlineno
               && PyUnicode_Compare(a->co_name, b->co_name) == 0
               && PyUnicode_Compare(a->co_filename, b->co_filename) == 0);
}

int
traceback_tidy(PyCodeObject *code)
{
    int shows = 0;
    PyObject *raised = raised_take();
    PyObject *traceback = PyException_GetTraceback(raised);
    if (traceback != NULL) {
        PyTracebackObject *first = (PyTracebackObject *)traceback;
        /* A warning made an error comes out of ours, and is no fault of ours. */
        if (!entry_is_hidden(innermost(first))
            || PyObject_TypeCheck(raised, (PyTypeObject *)PyExc_Warning)) {
            first = without_hidden(first);
            PyException_SetTraceback(raised, (PyObject *)first);
        }
        PyCodeObject *top = entry_code(first);
        shows = same_place(top, code);
        Py_DECREF(top);
        Py_DECREF(first);
    }
    raised_restore(raised);
    return shows;
}

void
traceback_show_function(PyFunctionObject *function)
{
    PyCodeObject *code = (PyCodeObject *)function->func_code;
    if (traceback_tidy(code)) {
        return;
    }
    PyObject *raised = raised_take();
    PyCodeObject *empty = NULL;
    PyFrameObject *frame = NULL;
    const char *file = PyUnicode_AsUTF8(code->co_filename);
    const char *name = PyUnicode_AsUTF8(code->co_name);
    if (file != NULL && name != NULL) {
        empty = PyCode_NewEmpty(file, name, code->co_firstlineno);
    }
    if (empty != NULL) {
        frame = PyFrame_New(PyThreadState_Get(), empty, function->func_globals, NULL);
    }
    PyErr_Clear(); /* the entry is a courtesy: the exception itself matters more */
    raised_restore(raised);
    if (frame != NULL) {
        PyTraceBack_Here(frame);
    }
    Py_XDECREF(frame);
    Py_XDECREF(empty);
}
