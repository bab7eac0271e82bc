/* Walking a program over a flat vector of values.
 *
 * What keeps the walk safe.  Values are borrowed where nothing can run between reading and last
 * use, and held (`owned` registers) where something can: a getter of torch's, a guard in Python, a
 * collection of garbage, another thread.  A pointer kept from the last walk is used only right
 * after its holder's tag was found unchanged.
 */
#include "program.h"

#include <stdlib.h>

enum { FEW_REGISTERS = 128, FEW_VALUES = 8, MAX_NEEDLESS = 8 };

/* An impossible tag of a dict marks that of a class, so that neither passes for the other. */
#define CLASS_MARK ((uint64_t)1 << 63)

/* The number of a value's present state; 0 where it has none that can be relied on. */
static inline uint64_t
tag_of(PyObject *value)
{
    if (PyDict_CheckExact(value)) {
        return dict_tag(value);
    }
    if (PyType_Check(value)) {
        uint64_t tag = type_tag((PyTypeObject *)value);
        return tag == 0 ? 0 : tag | CLASS_MARK;
    }
    /* An OrderedDict can change its order without changing as a dict. */
    return PyDict_Check(value) && !PyODict_Check(value) ? dict_tag(value) : 0;
}

/* Steps: a borrowed value, or NULL with or without an exception. */

static inline PyObject *
step_dict_item(Node *node, PyObject *base)
{
    if (!PyDict_Check(base)) {
        return NULL;
    }
    uint64_t tag = dict_tag(base);
    if (tag != 0 && tag == node->base_tag) {
        return node->cached;
    }
    PyObject *value = find_item(base, &node->key, &node->hint);
    node->cached = value;
    node->base_tag = value == NULL ? 0 : tag;
    return value;
}

static PyObject *
class_value(Node *node, PyObject *base)
{
    if (node->step == STEP_CLASS_ATTR) {
        return _PyType_Lookup((PyTypeObject *)base, node->name);
    }
    return super_lookup((PyTypeObject *)base, operand_object(&node->key), node->name);
}

static inline PyObject *
step_class_attr(Node *node, PyObject *base)
{
    if (!PyType_Check(base)) {
        return NULL;
    }
    uint64_t tag = type_tag((PyTypeObject *)base);
    if (tag != 0 && tag == node->base_tag) {
        return node->cached;
    }
    PyObject *value = class_value(node, base);
    node->cached = value; /* the look-up gave the class a tag if it had none */
    node->base_tag = value == NULL ? 0 : type_tag((PyTypeObject *)base);
    return value;
}

static inline PyObject *
tuple_item(PyObject *tuple, Py_ssize_t index)
{
    if (tuple == NULL || !PyTuple_Check(tuple) || index >= PyTuple_GET_SIZE(tuple)) {
        return NULL;
    }
    return PyTuple_GET_ITEM(tuple, index);
}

static inline PyObject *
step_seq_item(Node *node, PyObject *base)
{
    if (PyList_Check(base)) {
        return node->index < PyList_GET_SIZE(base) ? PyList_GET_ITEM(base, node->index) : NULL;
    }
    return tuple_item(base, node->index);
}

static PyObject *
step_function(Node *node, PyObject *base)
{
    if (!PyFunction_Check(base)) {
        return NULL;
    }
    PyFunctionObject *function = (PyFunctionObject *)base;
    switch (node->step) {
    case STEP_FUNCTION_GLOBALS:
        return function->func_globals;
    case STEP_FUNCTION_BUILTINS:
        return function->func_builtins;
    case STEP_CLOSURE_CELL:
        return tuple_item(function->func_closure, node->index);
    default:
        return tuple_item(function->func_defaults, node->index);
    }
}

static PyObject *
step_sys_module(Node *node)
{
    PyObject *modules = PyImport_GetModuleDict();
    return modules == NULL || !PyDict_Check(modules)
               ? NULL
               : find_item(modules, &node->key, &node->hint);
}

/* A new reference. */
static PyObject *
step_call(PyObject *function, PyObject *base)
{
    PyObject *answer = PyObject_CallOneArg(function, base);
    PyObject *value = tuple_item(answer, 0);
    Py_XINCREF(value);
    Py_XDECREF(answer);
    return value;
}

/* The value of a node; *owned says whether the reference is new. */
static inline PyObject *
take_step(Node *node, PyObject *base, PyObject *const *flat, Py_ssize_t nflat, int *owned)
{
    switch (node->step) {
    case STEP_LOCAL:
        return node->index < nflat ? flat[node->index] : NULL;
    case STEP_CONST: {
        PyObject *value = operand_object(&node->key);
        return value == Py_None && node->key.kind == BY_WEAKREF ? NULL : value;
    }
    case STEP_DICT_ITEM:
        return step_dict_item(node, base);
    case STEP_INSTANCE_DICT:
        return instance_dict(base);
    case STEP_CLASS_ATTR:
    case STEP_SUPER_ATTR:
        return step_class_attr(node, base);
    case STEP_SEQ_ITEM:
        return step_seq_item(node, base);
    case STEP_CELL_CONTENTS:
        return PyCell_Check(base) ? PyCell_GET(base) : NULL;
    case STEP_TYPE_OF:
        return (PyObject *)Py_TYPE(base);
    case STEP_DICT_KEY:
        return PyDict_Check(base) ? key_at(base, node->index) : NULL;
    case STEP_SYS_MODULE:
        return step_sys_module(node);
    case STEP_ATTR:
        *owned = 1;
        return read_field(base, node->name);
    case STEP_DEQUE_ITEM:
        *owned = 1;
        return deque_item(base, node->index);
    case STEP_CALL:
        *owned = 1;
        return step_call(node->key.obj, base);
    default:
        return step_function(node, base);
    }
}

/* Checks: 1, 0, or -1 with an exception. */

static int
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

static inline int
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

static inline int
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

/* Questions about the state of the process. */

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

static int
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

/* After the first check that passes, so in the state that is expected: have the probe made. */
static int
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

/* Relations. */

static int
by_address(const void *left, const void *right)
{
    uintptr_t a = *(const uintptr_t *)left, b = *(const uintptr_t *)right;
    return (a > b) - (a < b);
}

static int
are_distinct(PyObject *const *values, Py_ssize_t count)
{
    uintptr_t *sorted = PyMem_New(uintptr_t, count + 1);
    int distinct = 1;
    if (sorted == NULL) {
        return 0;
    }
    for (Py_ssize_t i = 0; i < count; i++) {
        sorted[i] = (uintptr_t)values[i];
    }
    qsort(sorted, (size_t)count, sizeof(*sorted), by_address);
    for (Py_ssize_t i = 1; distinct && i < count; i++) {
        distinct = sorted[i] != sorted[i - 1];
    }
    PyMem_Free(sorted);
    return distinct;
}

static int
by_extent(const void *left, const void *right)
{
    const Extent *a = left, *b = right;
    if (a->device_type != b->device_type) {
        return a->device_type < b->device_type ? -1 : 1;
    }
    if (a->device_id != b->device_id) {
        return a->device_id < b->device_id ? -1 : 1;
    }
    return (a->low > b->low) - (a->low < b->low);
}

/* Whether no two of these tensors' ranges meet; a group that DLPack does not know asks Python. */
static int
are_apart(Relation *relation, PyObject *const *values)
{
    Py_ssize_t count = relation->size, kept = 0, i;
    Extent *extents = PyMem_New(Extent, count + 1);
    int apart = 1;
    if (extents == NULL) {
        return 0;
    }
    for (i = 0; i < count && tensor_extent(values[i], &extents[kept]); i++) {
        kept += extents[kept].low < extents[kept].high; /* an empty tensor meets nothing */
    }
    if (i < count) {
        PyMem_Free(extents);
        return check_call(relation->holds, values, count);
    }
    qsort(extents, (size_t)kept, sizeof(*extents), by_extent);
    for (i = 1; apart && i < kept; i++) {
        Extent *before = &extents[i - 1], *here = &extents[i];
        apart = before->device_type != here->device_type || before->device_id != here->device_id
                || before->high <= here->low;
    }
    PyMem_Free(extents);
    return apart;
}

static int
relation_holds(Relation *relation, PyObject **regs)
{
    PyObject *few[FEW_VALUES], **values = few;
    if (relation->kind == RELATE_SAME) {
        return regs[relation->regs[0]] == regs[relation->regs[1]];
    }
    if (relation->size > FEW_VALUES) {
        values = PyMem_New(PyObject *, relation->size);
        if (values == NULL) {
            return 0;
        }
    }
    for (Py_ssize_t i = 0; i < relation->size; i++) {
        values[i] = regs[relation->regs[i]];
    }
    int holds = relation->kind == RELATE_DISTINCT ? are_distinct(values, relation->size)
                : relation->kind == RELATE_APART  ? are_apart(relation, values)
                                                  : check_call(relation->holds, values,
                                                               relation->size);
    if (values != few) {
        PyMem_Free(values);
    }
    return holds;
}

/* The walk. */

/* One node.  1: go on at *next; 0 or -1: stop. */
static inline int
visit_node(Program *program, Node *node, PyObject *value, int owned, PyObject **regs,
           Py_ssize_t *nheld, Py_ssize_t *next)
{
    if (node->owned) {
        regs[node->reg] = owned ? value : Py_NewRef(value);
        owned = 0;
        (*nheld)++;
    }
    else if (node->reg >= 0) {
        regs[node->reg] = value;
    }
    int holds = check_range(program, node->first, node->each, value);
    if (holds == 1 && (node->resume != 0 || node->each != node->end)) {
        uint64_t tag = tag_of(value);
        if (tag != 0 && tag == node->fixed_tag) {
            *next = node->resume;
        }
        else {
            holds = check_range(program, node->each, node->end, value);
        }
    }
    if (owned) {
        Py_DECREF(value);
    }
    return holds;
}

/* The common leaf: one check of a value that the last walk found in a dict that has not changed
 * since.  1 or 0 where that can be told here, -1 where it takes the long way. */
static inline int
quick_leaf(Program *program, Node *node, PyObject **regs)
{
    PyObject *base = regs[node->base], *value = node->cached;
    if (!PyDict_CheckExact(base) || node->base_tag == 0 || dict_tag(base) != node->base_tag) {
        return -1;
    }
    Check *check = &program->checks[node->first];
    if (check->kind == CHECK_LENGTH && PyDict_CheckExact(value)) {
        return PyDict_GET_SIZE(value) == check->number;
    }
    return check->kind == CHECK_TYPE
               ? operand_is(&check->operand, (PyObject *)Py_TYPE(value))
               : -1;
}

static int
walk_nodes(Program *program, PyObject *const *flat, Py_ssize_t nflat, PyObject **regs,
           Py_ssize_t *nheld)
{
    for (Py_ssize_t at = 0, next; at < program->nnodes; at = next) {
        Node *node = &program->nodes[at];
        if (node->is_leaf) {
            int told = quick_leaf(program, node, regs);
            if (told == 0) {
                return 0;
            }
            if (told == 1) {
                next = at + 1;
                continue;
            }
        }
        PyObject *base = node->base < 0 ? NULL : regs[node->base];
        int owned = 0, holds = 1;
        next = at + 1;
        if (node->step == STEP_REMEMBER) {
            program->nodes[node->index].fixed_tag = tag_of(base);
        }
        else {
            PyObject *value = take_step(node, base, flat, nflat, &owned);
            if (value == NULL) {
                return PyErr_Occurred() ? -1 : 0;
            }
            holds = visit_node(program, node, value, owned, regs, nheld, &next);
        }
        if (holds != 1) {
            return holds;
        }
    }
    return 1;
}

static int
check_all(Program *program, PyObject *const *flat, Py_ssize_t nflat, PyObject **regs,
          Py_ssize_t *nheld)
{
    int holds = state_holds(&program->state);
    if (holds == 1) {
        holds = walk_nodes(program, flat, nflat, regs, nheld);
    }
    for (Py_ssize_t i = 0; holds == 1 && i < program->nrelations; i++) {
        holds = relation_holds(&program->relations[i], regs);
    }
    if (holds == 1 && program->state.make_probe != NULL) {
        holds = make_probe(&program->state) < 0 ? -1 : 1;
    }
    return holds;
}

int
program_run(Program *program, PyObject *const *flat, Py_ssize_t nflat, PyObject **slots)
{
    PyObject *few[FEW_REGISTERS], **regs = few;
    Py_ssize_t nheld = 0;
    if (program->nregs > FEW_REGISTERS) {
        regs = PyMem_New(PyObject *, program->nregs);
        if (regs == NULL) {
            return 0;
        }
    }
    int holds = check_all(program, flat, nflat, regs, &nheld);
    if (holds != 1) {
        holds = swallow_exception();
    }
    else {
        for (Py_ssize_t i = 0; i < program->nslots; i++) {
            slots[i] = Py_NewRef(regs[program->slots[i]]);
        }
    }
    while (nheld > 0) {
        Py_DECREF(regs[--nheld]);
    }
    if (regs != few) {
        PyMem_Free(regs);
    }
    return holds;
}
