/* Walking a program over a flat vector of values. */
#include "recall.h"

enum { FEW_REGISTERS = 64 };

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

/* One node.  1: go on at *next; 0 or -1: stop. */
static inline int
visit_node(Program *program, Node *node, PyObject *value, int owned, Reading *reading,
           Py_ssize_t *next)
{
    if (node->owned) {
        reading->regs[node->reg] = reading->held[reading->nheld++]
            = owned ? value : Py_NewRef(value);
        owned = 0;
    }
    else if (node->reg >= 0) {
        reading->regs[node->reg] = value;
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

static inline int
walk_node(Program *program, Node *node, PyObject *const *flat, Py_ssize_t nflat,
          Reading *reading, Py_ssize_t *next)
{
    PyObject *base = node->base < 0 ? NULL : reading->regs[node->base];
    if (node->is_leaf) {
        int told = quick_leaf(program, node, reading->regs);
        if (told >= 0) {
            return told;
        }
    }
    if (node->step == STEP_REMEMBER) {
        program->nodes[node->index].fixed_tag = tag_of(base);
        return 1;
    }
    int owned = 0;
    PyObject *value = take_step(node, base, flat, nflat, &owned);
    if (value == NULL) {
        return PyErr_Occurred() ? -1 : 0;
    }
    return visit_node(program, node, value, owned, reading, next);
}

int
walk_nodes(Program *program, const int32_t *positions, Py_ssize_t count, PyObject *const *flat,
           Py_ssize_t nflat, Reading *reading)
{
    Py_ssize_t next = 0;
    int holds = 1;
    for (Py_ssize_t i = 0; holds == 1 && i < count; i++) {
        Py_ssize_t at = positions == NULL ? i : positions[i];
        if (at >= next) {
            next = at + 1;
            holds = walk_node(program, &program->nodes[at], flat, nflat, reading, &next);
        }
    }
    return holds;
}

static int
walk_all(Program *program, PyObject *const *flat, Py_ssize_t nflat, Reading *reading,
         PyObject **slots)
{
    int holds = walk_nodes(program, NULL, program->nnodes, flat, nflat, reading);
    for (Py_ssize_t i = 0; holds == 1 && i < program->nrelations; i++) {
        holds = relation_holds(&program->relations[i], reading->regs);
    }
    if (holds == 1 && program->state.make_probe != NULL) {
        holds = make_probe(&program->state) < 0 ? -1 : 1;
    }
    if (holds == 1) {
        for (Py_ssize_t i = 0; i < program->nslots; i++) {
            slots[i] = Py_NewRef(reading->regs[program->slots[i]]);
        }
        recall_consider(program, flat, nflat);
    }
    return holds;
}

int
program_run(Program *program, PyObject *const *flat, Py_ssize_t nflat, PyObject **slots)
{
    PyObject *few[2 * FEW_REGISTERS], **room = few;
    if (program->nregs > FEW_REGISTERS) {
        room = PyMem_New(PyObject *, 2 * program->nregs);
        if (room == NULL) {
            return 0;
        }
    }
    Reading reading = {room, room + program->nregs, 0};
    int holds = state_holds(&program->state);
    if (holds == 1) {
        holds = recall_run(program, flat, nflat, &reading, slots);
        if (holds == RECALL_STALE) {
            holds = walk_all(program, flat, nflat, &reading, slots);
        }
    }
    if (holds != 1) {
        holds = swallow_exception();
    }
    while (reading.nheld > 0) {
        Py_DECREF(reading.held[--reading.nheld]);
    }
    if (room != few) {
        PyMem_Free(room);
    }
    return holds;
}
