/* Remembering that a check holds, or that it is to be made each time. */
#include "record.h"

static int
record_length(Recorder *r, int32_t at, PyObject *value)
{
    if (PyDict_Check(value)) {
        return vouch_state(r, at);
    }
    if (PyList_Check(value)) {
        return vouch_type(r, at)
               && vouch_word(r, &((PyVarObject *)value)->ob_size, (uint64_t)Py_SIZE(value));
    }
    int stays = PyTuple_Check(value) || PyBytes_Check(value) || PyUnicode_Check(value)
                || PyFrozenSet_Check(value);
    return stays && r->certainty[at] == OBJECT;
}

/* 1: the facts vouch that the check holds; 0: they do not; -1: it is to be made each time. */
static int
record_check(Recorder *r, int32_t at, Check *check)
{
    PyObject *value = r->seen[at];
    Certainty certainty = r->certainty[at];
    switch (check->kind) {
    case CHECK_TYPE: /* a value that has the type for good keeps it alive, too */
        return vouch_type(r, at)
               && (r->typed[at] > BY_WORD || vouch_operand(r, &check->operand));
    case CHECK_IDENTITY:
        return certainty == OBJECT || vouch_operand(r, &check->operand);
    case CHECK_CONSTANT:
        return certainty == OBJECT || value == check->operand.obj;
    case CHECK_LENGTH:
        return record_length(r, at, value);
    case CHECK_KEYS:
        return !PyODict_Check(value) && vouch_state(r, at);
    case CHECK_HAS:
    case CHECK_LACKS:
    case CHECK_CLASS_LACKS:
        return vouch_state(r, at);
    default:
        return -1;
    }
}

int
runs_each_time(const Check *check)
{
    return check->kind == CHECK_TENSOR || check->kind == CHECK_CALL;
}

/* A spec that says the same as this one, if there is one. */
static int32_t
find_like(Recorder *r, int32_t spec)
{
    const TensorSpec *specs = r->program->tensors;
    for (int i = 0; i < r->nlikes; i++) {
        if (tensor_specs_alike(&specs[r->likes[i]], &specs[spec])) {
            return r->likes[i];
        }
    }
    if (r->nlikes < MAX_LIKES) {
        r->likes[r->nlikes++] = spec;
    }
    return spec;
}

/* Whether the tensor can be checked by memory alone, wherever it lies. */
static int
record_tensor(Recorder *r, PyObject *value, const Check *check)
{
    KnownTensor *known = &r->made->tensors[r->made->ntensors];
    *known = (KnownTensor){.value = value, .spec = (int32_t)check->number};
    if (check->kind != CHECK_TENSOR || !tensor_note(r->program->tensors, known)) {
        return 0;
    }
    known->like = find_like(r, known->spec);
    r->made->ntensors++;
    return 1;
}

static void
record_recheck(Recorder *r, PyObject *value, int32_t check)
{
    Recheck *last = &r->made->rechecks[r->made->nrechecks];
    if (r->made->nrechecks > 0 && last[-1].to == check && last[-1].value == value) {
        last[-1].to++;
    }
    else {
        *last = (Recheck){value, check, check + 1};
        r->made->nrechecks++;
    }
}

/* Whether all checks of a node are vouched for, but those to be made each time. */
int
record_checks(Recorder *r, int32_t at, Node *node)
{
    for (int32_t i = node->first; i < node->end; i++) {
        Check *check = &r->program->checks[i];
        if (runs_each_time(check)) {
            if (!record_tensor(r, r->seen[at], check)) {
                record_recheck(r, r->seen[at], i);
            }
        }
        else if (check_value(r->program, check, r->seen[at]) != 1 || !record_check(r, at, check)) {
            return 0;
        }
    }
    return 1;
}
