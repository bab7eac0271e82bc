/* Questions about the state of the process and of the thread, and the probe that saves most. */
#include "walk.h"

enum { MAX_NEEDLESS = 8 };

static PyObject *
ask_question(const Question *question)
{
    if (question->argument != NULL) {
        return PyObject_CallOneArg(question->function, question->argument);
    }
    if (Py_IS_TYPE(question->function, &PyCFunction_Type)) {
        PyCFunctionObject *function = (PyCFunctionObject *)question->function;
        if (function->m_ml->ml_flags == METH_NOARGS) {
            return function->m_ml->ml_meth(function->m_self, NULL);
        }
    }
    return PyObject_CallNoArgs(question->function);
}

static int
questions_hold(const Question *questions, Py_ssize_t count)
{
    for (Py_ssize_t i = 0; i < count; i++) {
        PyObject *answer = ask_question(&questions[i]);
        if (answer == NULL) {
            return -1;
        }
        int same = same_constant(questions[i].expected, answer);
        Py_DECREF(answer);
        if (same != 1) {
            return same;
        }
    }
    return 1;
}

static int
probe_passes(State *state)
{
    PyCFunctionObject *probe = (PyCFunctionObject *)Py_NewRef(state->probe);
    PyObject *arguments = Py_NewRef(state->probe_arguments);
    PyCFunctionWithKeywords call = (PyCFunctionWithKeywords)(void (*)(void))probe->m_ml->ml_meth;
    PyObject *answer = call(probe->m_self, arguments, NULL);
    int passes = answer == Py_True;
    Py_XDECREF(answer);
    Py_DECREF(arguments);
    Py_DECREF(probe);
    return answer == NULL ? swallow_exception() : passes;
}

static int
probed_questions_hold(State *state)
{
    int had_probe = state->probe != NULL;
    if (had_probe) {
        int passes = probe_passes(state);
        if (passes != 0) {
            return passes;
        }
    }
    int holds = questions_hold(state->probed, state->nprobed);
    if (holds == 1 && had_probe && ++state->needless >= MAX_NEEDLESS) {
        Py_CLEAR(state->probe);
    }
    return holds;
}

int
state_holds(State *state)
{
    int holds = questions_hold(state->always, state->nalways);
    if (holds == 1) {
        holds = probed_questions_hold(state);
    }
    for (Py_ssize_t i = 0; holds == 1 && i < PyTuple_GET_SIZE(state->tests); i++) {
        holds = check_call(PyTuple_GET_ITEM(state->tests, i), NULL, 0);
    }
    return holds;
}

int
make_probe(State *state)
{
    PyObject *maker = state->make_probe;
    state->make_probe = NULL;
    PyObject *made = PyObject_CallNoArgs(maker), *probe, *arguments;
    Py_DECREF(maker);
    if (made == NULL) {
        return swallow_exception();
    }
    if (made != Py_None && PyArg_ParseTuple(made, "OO!", &probe, &PyTuple_Type, &arguments)
        && PyCFunction_CheckExact(probe)
        && PyCFunction_GET_FLAGS(probe) == (METH_VARARGS | METH_KEYWORDS)) {
        Py_XSETREF(state->probe_arguments, Py_NewRef(arguments));
        Py_XSETREF(state->probe, Py_NewRef(probe));
    }
    PyErr_Clear();
    Py_DECREF(made);
    return 1;
}
