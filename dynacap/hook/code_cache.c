#include "code_cache.h"

static Py_ssize_t extra_index = -1;
static unsigned generation = 1;

static void
note_free(void *pointer)
{
    CodeNote *note = pointer;
    if (note != NULL) {
        Py_XDECREF(note->shown);
        Py_XDECREF(note->quiet);
        PyMem_Free(note);
    }
}

int
code_cache_init(void)
{
    if (extra_index < 0) {
        extra_index = code_extra_request(note_free);
    }
    if (extra_index < 0) {
        PyErr_SetString(PyExc_ImportError, "no extra slot is left on code objects");
        return -1;
    }
    return 0;
}

CodeNote *
code_note_find(PyCodeObject *code)
{
    void *note = NULL;
    if (code_extra_get((PyObject *)code, extra_index, &note) < 0) {
        PyErr_Clear();
        return NULL;
    }
    return note;
}

CodeNote *
code_note(PyCodeObject *code)
{
    CodeNote *note = code_note_find(code);
    if (note != NULL) {
        return note;
    }
    note = PyMem_Calloc(1, sizeof(CodeNote));
    if (note == NULL) {
        PyErr_NoMemory();
        return NULL;
    }
    if (code_extra_set((PyObject *)code, extra_index, note) < 0) {
        PyMem_Free(note);
        return NULL;
    }
    return note;
}

int
code_is_never(const CodeNote *note)
{
    return note != NULL && note->never == generation;
}

int
code_mark_never(PyCodeObject *code)
{
    CodeNote *note = code_note(code);
    if (note == NULL) {
        return -1;
    }
    note->never = generation;
    return 0;
}

void
code_clear_marks(void)
{
    generation++;
}

/* `code` (borrowed) with other instructions, all on its first line; owned, NULL with an error. */
static PyCodeObject *
with_instructions(PyCodeObject *code, const char *instructions, Py_ssize_t size)
{
    PyObject *result = NULL;
    PyObject *empty = PyTuple_New(0);
    PyObject *replace = PyObject_GetAttrString((PyObject *)code, "replace");
    /* One location entry: no columns, as many code units as there are, the first line. */
    char lines[2] = {(char)(0x80 | (13 << 3) | (size / 2 - 1)), 0};
    PyObject *changes = Py_BuildValue("{s:y#,s:y#,s:y#}", "co_code", instructions, size,
                                      "co_linetable", lines, (Py_ssize_t)2,
                                      "co_exceptiontable", "", (Py_ssize_t)0);
    if (empty != NULL && replace != NULL && changes != NULL) {
        result = PyObject_Call(replace, empty, changes);
    }
    Py_XDECREF(empty);
    Py_XDECREF(replace);
    Py_XDECREF(changes);
    return (PyCodeObject *)result;
}

PyCodeObject *
code_shown_return(PyCodeObject *code)
{
    static const char instructions[4] = {(char)RESUME, 0, (char)RETURN_VALUE, 0};
    CodeNote *note = code_note(code);
    if (note == NULL) {
        return NULL;
    }
    if (note->shown == NULL) {
        note->shown = with_instructions(code, instructions, sizeof(instructions));
    }
    return note->shown;
}

/* A frame counts as begun, and shows, from the first RESUME on: this one never does. */
PyCodeObject *
code_quiet_return(PyCodeObject *code)
{
    static const char instructions[2] = {(char)RETURN_VALUE, 0};
    CodeNote *note = code_note(code);
    if (note == NULL) {
        return NULL;
    }
    if (note->quiet == NULL) {
        note->quiet = with_instructions(code, instructions, sizeof(instructions));
    }
    return note->quiet;
}
