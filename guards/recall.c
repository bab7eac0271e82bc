/* Answering from what is remembered, and deciding when remembering is worth it. */
#include "recall.h"

enum { MAX_PATIENCE = 256 };

void
recall_release(Recall *recall)
{
    if (--recall->refs > 0) {
        return;
    }
    pulse_release(recall->pulse);
    PyMem_Free(recall->roots);
    PyMem_Free(recall->facts);
    PyMem_Free(recall->rechecks);
    PyMem_Free(recall->tensors);
    PyMem_Free(recall->revisits);
    PyMem_Free(recall->known);
    PyMem_Free(recall->relations);
    PyMem_Free(recall->slots);
    PyMem_Free(recall);
}

void
recall_drop(Program *program)
{
    Recall *recall = program->recall;
    program->recall = NULL;
    if (recall != NULL) {
        recall->pulse->beats = 0;
        recall_release(recall);
    }
}

void
recall_consider(Program *program, PyObject *const *flat, Py_ssize_t nflat)
{
    if (program->recall == NULL && program->waiting-- <= 0) {
        program->waiting = program->patience;
        program->recall = recall_make(program, flat, nflat);
    }
}

/* What is remembered was of no use: wait longer before the next attempt. */
static int
give_up(Program *program)
{
    program->patience = Py_MIN(2 * program->patience + 1, MAX_PATIENCE);
    program->waiting = program->patience;
    recall_drop(program);
    return RECALL_STALE;
}

static int
roots_hold(const Recall *recall, PyObject *const *flat, Py_ssize_t nflat)
{
    for (Py_ssize_t i = 0; i < recall->nroots; i++) {
        Node *node = recall->roots[i].node;
        if (node->index >= nflat || flat[node->index] != recall->roots[i].value) {
            node->changes += node->changes < UINT8_MAX;
            return 0;
        }
    }
    return 1;
}

static inline int
facts_hold(const Recall *recall)
{
    const Fact *end = recall->facts + recall->nfacts;
    for (const Fact *fact = recall->facts; fact < end; fact++) {
        if (*(const uint64_t *)fact->place != fact->expected) {
            return 0;
        }
    }
    return 1;
}

/* Hold what is known and will be looked at; from here on code may run. */
static void
take_known(const Recall *recall, Reading *reading)
{
    for (Py_ssize_t i = 0; i < recall->nknown; i++) {
        const Known *known = &recall->known[i];
        reading->regs[known->reg] = known->value;
        reading->held[reading->nheld++] = Py_NewRef(known->value);
    }
}

static void
take_slots(const Program *program, const Recall *recall, PyObject **slots)
{
    for (Py_ssize_t i = 0; i < program->nslots; i++) {
        slots[i] = Py_XNewRef(recall->slots[i]);
    }
}

/* Tensors that are not where they were are checked like any other, and known anew. */
static int
tensors_hold(Program *program, const Recall *recall)
{
    TensorSpec *specs = program->tensors;
    int holds = 1;
    for (Py_ssize_t i = 0; holds == 1; i++) {
        i = tensors_as_known(specs, recall->tensors, i, recall->ntensors);
        if (i == recall->ntensors) {
            break;
        }
        KnownTensor *known = &recall->tensors[i];
        holds = tensor_spec_matches(&specs[known->spec], known->value);
        if (holds == 1) {
            tensor_note(specs, known);
        }
    }
    return holds;
}

static int
rest_holds(Program *program, const Recall *recall, PyObject *const *flat, Py_ssize_t nflat,
           Reading *reading)
{
    int holds = walk_nodes(program, recall->revisits, recall->nrevisits, flat, nflat, reading);
    if (holds == 1) {
        holds = tensors_hold(program, recall);
    }
    for (Py_ssize_t i = 0; holds == 1 && i < recall->nrechecks; i++) {
        const Recheck *recheck = &recall->rechecks[i];
        holds = check_range(program, recheck->from, recheck->to, recheck->value);
    }
    for (Py_ssize_t i = 0; holds == 1 && i < recall->nrelations; i++) {
        holds = relation_holds(&program->relations[recall->relations[i]], reading->regs);
    }
    return holds;
}

int
recall_run(Program *program, PyObject *const *flat, Py_ssize_t nflat, Reading *reading,
           PyObject **slots)
{
    Recall *recall = program->recall;
    if (recall == NULL) {
        return RECALL_STALE;
    }
    if (!recall->pulse->beats || !roots_hold(recall, flat, nflat) || !facts_hold(recall)) {
        return give_up(program);
    }
    recall->refs++; /* another thread may replace it while code runs */
    take_slots(program, recall, slots);
    take_known(recall, reading);
    int holds = rest_holds(program, recall, flat, nflat, reading);
    for (Py_ssize_t i = 0; i < program->nslots; i++) {
        if (recall->slots[i] == NULL && holds == 1) {
            slots[i] = Py_NewRef(reading->regs[program->slots[i]]);
        }
        else if (recall->slots[i] != NULL && holds != 1) {
            Py_DECREF(slots[i]);
        }
    }
    recall_release(recall);
    program->recalled += holds == 1;
    if (holds == 1 && program->patience > 0 && program->recalled % 16 == 0) {
        program->patience--;
    }
    return holds;
}
