/* Making a checker's program from its description, and taking it down. */
#include "recall.h"

#include <string.h>

const char *const step_names[STEP_COUNT] = {
    "local",         "const",        "sys_module", "function_globals", "function_builtins",
    "closure_cell",  "cell_contents", "function_default", "instance_dict", "dict_item",
    "dict_key",      "seq_item",     "deque_item", "attr",             "type_of",
    "class_attr",    "super_attr",   "tensor_number", "call",           "remember",
};
const char *const check_names[CHECK_COUNT] = {
    "type", "identity", "constant", "length", "keys", "has", "lacks", "class_lacks", "tensor", "call",
};
const char *const relation_names[RELATE_COUNT] = {
    "same", "distinct", "apart", "sizes", "call",
};
static const char *const operand_names[] = {"string", "value", "identity", "weakref"};

static int
find_name(const char *const *names, int count, const char *wanted)
{
    for (int i = 0; i < count; i++) {
        if (strcmp(names[i], wanted) == 0) {
            return i;
        }
    }
    PyErr_Format(PyExc_ValueError, "the C checker knows nothing named '%s'", wanted);
    return -1;
}

/* Room for `count` items, zeroed; never of size 0, so that NULL means failure. */
static void *
make_room(Py_ssize_t count, size_t size)
{
    void *room = PyMem_Calloc((size_t)count + 1, size);
    if (room == NULL) {
        PyErr_NoMemory();
    }
    return room;
}

/* An operand is (kind, object). */
static int
operand_init(Operand *operand, PyObject *pair)
{
    const char *kind_name;
    PyObject *obj;
    if (!PyArg_ParseTuple(pair, "sO", &kind_name, &obj)) {
        return -1;
    }
    int kind = find_name(operand_names, 4, kind_name);
    if (kind < 0) {
        return -1;
    }
    if (kind == BY_WEAKREF && !PyWeakref_Check(obj)) {
        PyErr_SetString(PyExc_TypeError, "a weak operand is a weak reference");
        return -1;
    }
    *operand = (Operand){Py_NewRef(obj), (OperandKind)kind};
    return 0;
}

static int
check_init_keys(Check *check, PyObject *keys)
{
    check->number = PyTuple_GET_SIZE(keys);
    check->keys = make_room(check->number, sizeof(Operand));
    if (check->keys == NULL) {
        return -1;
    }
    for (Py_ssize_t i = 0; i < check->number; i++) {
        if (operand_init(&check->keys[i], PyTuple_GET_ITEM(keys, i)) < 0) {
            return -1;
        }
    }
    return 0;
}

/* A check is (kind, operand or None, number, keys). */
static int
check_init(Check *check, PyObject *fields)
{
    const char *kind_name;
    PyObject *operand, *keys;
    if (!PyArg_ParseTuple(fields, "sOnO!", &kind_name, &operand, &check->number, &PyTuple_Type,
                          &keys)) {
        return -1;
    }
    int kind = find_name(check_names, CHECK_COUNT, kind_name);
    if (kind < 0 || (operand != Py_None && operand_init(&check->operand, operand) < 0)) {
        return -1;
    }
    check->kind = (CheckKind)kind;
    return kind == CHECK_KEYS ? check_init_keys(check, keys) : 0;
}

/* A node is (step, base, reg, owned, resume, first, each, end, index, key or None, name or None) */
static int
node_init(Node *node, PyObject *fields)
{
    const char *step_name;
    PyObject *key, *name;
    int owned;
    if (!PyArg_ParseTuple(fields, "siipiiiinOO", &step_name, &node->base, &node->reg, &owned,
                          &node->resume, &node->first, &node->each, &node->end, &node->index, &key,
                          &name)) {
        return -1;
    }
    int step = find_name(step_names, STEP_COUNT, step_name);
    if (step < 0 || (key != Py_None && operand_init(&node->key, key) < 0)) {
        return -1;
    }
    node->step = (uint8_t)step;
    node->owned = (uint8_t)owned;
    node->is_leaf = step == STEP_DICT_ITEM && node->reg < 0 && node->resume == 0
                    && node->end - node->first == 1;
    node->name = name == Py_None ? NULL : Py_NewRef(name);
    return step == STEP_TENSOR_NUMBER ? tensor_number_place(name, node->index, &node->hint) : 0;
}

static int32_t *
read_indices(PyObject *tuple)
{
    int32_t *indices = make_room(PyTuple_GET_SIZE(tuple), sizeof(int32_t));
    for (Py_ssize_t i = 0; indices != NULL && i < PyTuple_GET_SIZE(tuple); i++) {
        indices[i] = (int32_t)PyLong_AsLong(PyTuple_GET_ITEM(tuple, i));
    }
    return indices;
}

/* A relation is (kind, registers, holds, instructions on sizes). */
static int
relation_init(Relation *relation, PyObject *fields)
{
    const char *kind_name;
    PyObject *regs, *holds, *sizes;
    if (!PyArg_ParseTuple(fields, "sO!OO!", &kind_name, &PyTuple_Type, &regs, &holds,
                          &PyTuple_Type, &sizes)) {
        return -1;
    }
    int kind = find_name(relation_names, RELATE_COUNT, kind_name);
    if (kind < 0) {
        return -1;
    }
    relation->kind = (RelationKind)kind;
    relation->size = PyTuple_GET_SIZE(regs);
    relation->holds = Py_NewRef(holds);
    relation->regs = read_indices(regs);
    return relation->regs == NULL ? -1 : size_program_init(&relation->sizes, sizes);
}

/* A question is (function, (argument,) or (), expected). */
static int
questions_init(Question **questions, Py_ssize_t *count, PyObject *tuple)
{
    Py_ssize_t size = PyTuple_GET_SIZE(tuple);
    *questions = make_room(size, sizeof(Question));
    if (*questions == NULL) {
        return -1;
    }
    *count = size;
    for (Py_ssize_t i = 0; i < size; i++) {
        PyObject *function, *arguments, *expected;
        if (!PyArg_ParseTuple(PyTuple_GET_ITEM(tuple, i), "OO!O", &function, &PyTuple_Type,
                              &arguments, &expected)) {
            return -1;
        }
        PyObject *argument = PyTuple_GET_SIZE(arguments) ? PyTuple_GET_ITEM(arguments, 0) : NULL;
        (*questions)[i]
            = (Question){Py_NewRef(function), Py_XNewRef(argument), Py_NewRef(expected)};
    }
    return 0;
}

/* The state is (always, probed, make_probe, tests). */
static int
state_init(State *state, PyObject *fields)
{
    PyObject *always, *probed, *make_probe, *tests;
    if (!PyArg_ParseTuple(fields, "O!O!OO!", &PyTuple_Type, &always, &PyTuple_Type, &probed,
                          &make_probe, &PyTuple_Type, &tests)) {
        return -1;
    }
    state->tests = Py_NewRef(tests);
    state->make_probe = Py_NewRef(make_probe);
    if (questions_init(&state->always, &state->nalways, always) < 0) {
        return -1;
    }
    return questions_init(&state->probed, &state->nprobed, probed);
}

/* The items of description[key], a tuple, each given to `init`. */
#define INIT_ALL(program, description, key, array, count, init)                                    \
    do {                                                                                           \
        PyObject *items = PyDict_GetItemString(description, key);                                  \
        if (items == NULL || !PyTuple_Check(items)) {                                              \
            PyErr_SetString(PyExc_TypeError, "the description has no tuple '" key "'");            \
            return -1;                                                                             \
        }                                                                                          \
        (program)->array = make_room(PyTuple_GET_SIZE(items), sizeof(*(program)->array));          \
        if ((program)->array == NULL) {                                                            \
            return -1;                                                                             \
        }                                                                                          \
        for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(items); i++) {                                 \
            (program)->count = i + 1;                                                              \
            if (init(&(program)->array[i], PyTuple_GET_ITEM(items, i)) < 0) {                      \
                return -1;                                                                         \
            }                                                                                      \
        }                                                                                          \
    } while (0)

/* Let each node know the position of its base, of which it knows the register. */
static int
link_bases(Program *program)
{
    int32_t *homes = make_room(program->nregs, sizeof(int32_t));
    if (homes == NULL) {
        return -1;
    }
    for (Py_ssize_t i = 0; i < program->nnodes; i++) {
        Node *node = &program->nodes[i];
        node->base_node = node->base < 0 ? -1 : homes[node->base];
        if (node->base >= 0) {
            program->nodes[node->base_node].has_children = 1;
        }
        if (node->reg >= 0) {
            homes[node->reg] = (int32_t)i;
        }
    }
    PyMem_Free(homes);
    return 0;
}

int
program_init(Program *program, PyObject *description)
{
    INIT_ALL(program, description, "nodes", nodes, nnodes, node_init);
    INIT_ALL(program, description, "checks", checks, nchecks, check_init);
    INIT_ALL(program, description, "relations", relations, nrelations, relation_init);
    INIT_ALL(program, description, "tensors", tensors, ntensors, tensor_spec_init);
    PyObject *state = PyDict_GetItemString(description, "state");
    PyObject *slots = PyDict_GetItemString(description, "slots");
    PyObject *counts = PyDict_GetItemString(description, "registers");
    if (state == NULL || slots == NULL || counts == NULL) {
        PyErr_SetString(PyExc_TypeError, "the description lacks a part");
        return -1;
    }
    program->slots = read_indices(slots);
    program->nslots = PyTuple_GET_SIZE(slots);
    if (program->slots == NULL
        || !PyArg_ParseTuple(counts, "nn", &program->nowned, &program->nregs)
        || link_bases(program) < 0) {
        return -1;
    }
    return state_init(&program->state, state);
}

static void
questions_clear(Question *questions, Py_ssize_t count)
{
    for (Py_ssize_t i = 0; i < count; i++) {
        Py_CLEAR(questions[i].function);
        Py_CLEAR(questions[i].argument);
        Py_CLEAR(questions[i].expected);
    }
    PyMem_Free(questions);
}

static void
state_clear(State *state)
{
    questions_clear(state->always, state->nalways);
    questions_clear(state->probed, state->nprobed);
    Py_CLEAR(state->probe);
    Py_CLEAR(state->probe_arguments);
    Py_CLEAR(state->make_probe);
    Py_CLEAR(state->tests);
}

static void
check_clear(Check *check)
{
    for (Py_ssize_t i = 0; check->keys != NULL && i < check->number; i++) {
        Py_CLEAR(check->keys[i].obj);
    }
    PyMem_Free(check->keys);
    Py_CLEAR(check->operand.obj);
}

void
program_clear(Program *program)
{
    recall_drop(program);
    Program old = *program;
    memset(program, 0, sizeof(*program)); /* what is released may come back to look */
    for (Py_ssize_t i = 0; i < old.nnodes; i++) {
        Py_CLEAR(old.nodes[i].key.obj);
        Py_CLEAR(old.nodes[i].name);
    }
    for (Py_ssize_t i = 0; i < old.nchecks; i++) {
        check_clear(&old.checks[i]);
    }
    for (Py_ssize_t i = 0; i < old.nrelations; i++) {
        Py_CLEAR(old.relations[i].holds);
        PyMem_Free(old.relations[i].regs);
        size_program_clear(&old.relations[i].sizes);
    }
    for (Py_ssize_t i = 0; i < old.ntensors; i++) {
        tensor_spec_clear(&old.tensors[i]);
    }
    state_clear(&old.state);
    PyMem_Free(old.nodes);
    PyMem_Free(old.checks);
    PyMem_Free(old.relations);
    PyMem_Free(old.tensors);
    PyMem_Free(old.slots);
}

static int
visit_questions(Question *questions, Py_ssize_t count, visitproc visit, void *arg)
{
    for (Py_ssize_t i = 0; i < count; i++) {
        Py_VISIT(questions[i].function);
        Py_VISIT(questions[i].argument);
        Py_VISIT(questions[i].expected);
    }
    return 0;
}

static int
visit_state(State *state, visitproc visit, void *arg)
{
    Py_VISIT(state->probe);
    Py_VISIT(state->probe_arguments);
    Py_VISIT(state->make_probe);
    Py_VISIT(state->tests);
    int stop = visit_questions(state->always, state->nalways, visit, arg);
    return stop ? stop : visit_questions(state->probed, state->nprobed, visit, arg);
}

int
program_visit(Program *program, visitproc visit, void *arg)
{
    for (Py_ssize_t i = 0; i < program->nnodes; i++) {
        Py_VISIT(program->nodes[i].key.obj);
        Py_VISIT(program->nodes[i].name);
    }
    for (Py_ssize_t i = 0; i < program->nchecks; i++) {
        Check *check = &program->checks[i];
        Py_VISIT(check->operand.obj);
        for (Py_ssize_t k = 0; check->keys != NULL && k < check->number; k++) {
            Py_VISIT(check->keys[k].obj);
        }
    }
    for (Py_ssize_t i = 0; i < program->nrelations; i++) {
        Py_VISIT(program->relations[i].holds);
    }
    for (Py_ssize_t i = 0; i < program->ntensors; i++) {
        int stop = tensor_spec_visit(&program->tensors[i], visit, arg);
        if (stop) {
            return stop;
        }
    }
    return visit_state(&program->state, visit, arg);
}
