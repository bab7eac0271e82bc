/* A frame evaluator as a debugger has one: counts, and hands each frame to the one before it. */
#include <Python.h>

static _PyFrameEvalFunction before = NULL;
static int count = 0;

static PyObject *
evaluate(PyThreadState *tstate, struct _PyInterpreterFrame *frame, int throwflag)
{
    count++;
    return before(tstate, frame, throwflag);
}

static _PyFrameEvalFunction
current(void)
{
    return _PyInterpreterState_GetEvalFrameFunc(PyInterpreterState_Get());
}

void
push(void)
{
    before = current();
    _PyInterpreterState_SetEvalFrameFunc(PyInterpreterState_Get(), evaluate);
}

void
pop(void)
{
    _PyInterpreterState_SetEvalFrameFunc(PyInterpreterState_Get(), before);
}

int
is_on_top(void)
{
    return current() == evaluate;
}

int
is_default_on_top(void)
{
    return current() == _PyEval_EvalFrameDefault;
}

int
take_count(void)
{
    int result = count;
    count = 0;
    return result;
}
