/* Checks of one value: 1, 0, or -1 with an exception. */
#include "walk.h"

int
check_call(PyObject *holds, PyObject *const *values, Py_ssize_t count)
{
    PyObject *answer = PyObject_Vectorcall(holds, values, (size_t)count, NULL);
    if (answer == NULL) {
        return -1;
    }
    int result = PyObject_IsTrue(answer);
    Py_DECREF(answer);
    return result;
}

static int
check_keys(Check *check, PyObject *value)
{
    PyObject *key;
    Py_ssize_t at = 0, count = 0;
    if (!PyDict_Check(value) || PyDict_GET_SIZE(value) != check->number) {
        return 0;
    }
    if (PyODict_Check(value)) { /* its order is not that of its storage */
        return check_call(check->operand.obj, &value, 1);
    }
    while (PyDict_Next(value, &at, &key, NULL)) {
        Operand *wanted = &check->keys[count];
        int same = operand_is(wanted, key) ? 1 : operand_matches(wanted, key);
        if (same != 1) {
            return same;
        }
        count++;
    }
    return 1;
}

static int
check_key(Check *check, PyObject *value)
{
    if (!PyDict_Check(value)) {
        return 0;
    }
    PyObject *found = find_item(value, &check->operand, &check->hint);
    if (found == NULL && PyErr_Occurred()) {
        return -1;
    }
    return (found != NULL) == (check->kind == CHECK_HAS);
}

int
check_value(Program *program, Check *check, PyObject *value)
{
    switch (check->kind) {
    case CHECK_TYPE:
        return operand_is(&check->operand, (PyObject *)Py_TYPE(value));
    case CHECK_IDENTITY:
        return operand_is(&check->operand, value);
    case CHECK_CONSTANT:
        return same_constant(check->operand.obj, value);
    case CHECK_LENGTH:
        if (PyDict_CheckExact(value)) {
            return PyDict_GET_SIZE(value) == check->number;
        }
        return raw_length(value) == check->number;
    case CHECK_HAS:
    case CHECK_LACKS:
        return check_key(check, value);
    case CHECK_KEYS:
        return check_keys(check, value);
    case CHECK_CLASS_LACKS:
        return PyType_Check(value)
               && _PyType_Lookup((PyTypeObject *)value, check->operand.obj) == NULL
               && !PyErr_Occurred();
    case CHECK_TENSOR:
        return tensor_spec_matches(&program->tensors[check->number], value);
    default:
        return check_call(check->operand.obj, &value, 1);
    }
}

int
check_range(Program *program, int32_t from, int32_t to, PyObject *value)
{
    for (int32_t i = from; i < to; i++) {
        int holds = check_value(program, &program->checks[i], value);
        if (holds != 1) {
            return holds;
        }
    }
    return 1;
}
