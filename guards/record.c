/* Remembering: a second look at all that the walk has just read, which notes what vouches for it.
 *
 * Nothing runs meanwhile, so all values are of one moment.
 */
#include "record.h"

/* Take note of one node, or leave it to be walked. */
static void
record_node(Recorder *r, int32_t at)
{
    Node *node = &r->program->nodes[at];
    Py_ssize_t rechecks = r->made->nrechecks, tensors = r->made->ntensors;
    PyObject *value = r->seen[at] = read_quietly(r, node);
    if (value != NULL) {
        r->certainty[at] = record_step(r, at, node, value);
    }
    if (r->certainty[at] != LOST && !record_checks(r, at, node)) {
        r->certainty[at] = LOST;
        r->made->nrechecks = rechecks;
        r->made->ntensors = tensors;
    }
    if (r->certainty[at] == LOST) {
        r->made->revisits[r->made->nrevisits++] = at;
    }
}

static void
record_nodes(Recorder *r)
{
    for (int32_t at = 0; at < r->program->nnodes && !r->failed; at++) {
        Node *node = &r->program->nodes[at];
        if (node->step != STEP_REMEMBER) {
            record_node(r, at);
        }
        else if (r->certainty[node->index] == LOST) {
            r->made->revisits[r->made->nrevisits++] = at;
        }
    }
}

/* What the nodes and relations that are looked at again read of the others. */

static void
need(Recorder *r, int32_t at, uint8_t *needed)
{
    Node *node = &r->program->nodes[at];
    if (r->certainty[at] != LOST && !needed[at]) {
        needed[at] = 1;
        r->made->known[r->made->nknown++] = (Known){node->reg, r->seen[at]};
    }
}

/* Whether a relation says no more than facts do: it is about which objects these are, and they are
 * all remembered. */
static int
is_settled(Recorder *r, const Relation *relation, const int32_t *homes)
{
    int settled = relation->kind == RELATE_SAME || relation->kind == RELATE_DISTINCT;
    for (Py_ssize_t i = 0; settled && i < relation->size; i++) {
        settled = r->certainty[homes[relation->regs[i]]] != LOST;
    }
    return settled;
}

/* Values to be rechecked are held meanwhile, by a slot or else as known. */
static void
need_rechecked(Recorder *r, uint8_t *needed, const uint8_t *has_slot)
{
    for (int32_t at = 0; at < r->program->nnodes; at++) {
        Node *node = &r->program->nodes[at];
        for (int32_t i = node->first; i < node->end && !has_slot[at]; i++) {
            if (runs_each_time(&r->program->checks[i])) {
                need(r, at, needed);
            }
        }
    }
}

static void
record_rest(Recorder *r, const int32_t *homes, uint8_t *needed, uint8_t *has_slot)
{
    Program *program = r->program;
    Recall *made = r->made;
    for (Py_ssize_t i = 0; i < program->nslots; i++) {
        int32_t home = homes[program->slots[i]];
        made->slots[i] = r->certainty[home] == LOST ? NULL : r->seen[home];
        has_slot[home] = 1;
    }
    need_rechecked(r, needed, has_slot);
    for (Py_ssize_t i = 0; i < made->nrevisits; i++) {
        Node *node = &program->nodes[made->revisits[i]];
        if (node->base >= 0) {
            need(r, node->base_node, needed);
        }
    }
    for (int32_t i = 0; i < program->nrelations; i++) {
        Relation *relation = &program->relations[i];
        if (!is_settled(r, relation, homes)) {
            made->relations[made->nrelations++] = i;
            for (Py_ssize_t k = 0; k < relation->size; k++) {
                need(r, homes[relation->regs[k]], needed);
            }
        }
    }
}

static Recall *
recall_new(const Program *program)
{
    Recall *made = PyMem_Calloc(1, sizeof(Recall));
    if (made == NULL) {
        return NULL;
    }
    size_t nodes = (size_t)program->nnodes + 1, checks = (size_t)program->nchecks + 1;
    made->refs = 1;
    made->pulse = pulse_new();
    made->roots = PyMem_Calloc(nodes, sizeof(Root));
    made->rechecks = PyMem_Calloc(checks, sizeof(Recheck));
    made->tensors = PyMem_Calloc((size_t)program->ntensors + 1, sizeof(KnownTensor));
    made->revisits = PyMem_Calloc(nodes, sizeof(int32_t));
    made->known = PyMem_Calloc(nodes, sizeof(Known));
    made->relations = PyMem_Calloc((size_t)program->nrelations + 1, sizeof(int32_t));
    made->slots = PyMem_Calloc((size_t)program->nslots + 1, sizeof(PyObject *));
    if (made->pulse == NULL || made->roots == NULL || made->rechecks == NULL
        || made->tensors == NULL || made->revisits == NULL || made->known == NULL
        || made->relations == NULL || made->slots == NULL) {
        recall_release(made);
        return NULL;
    }
    return made;
}

static int32_t *
find_homes(const Program *program)
{
    int32_t *homes = PyMem_Calloc((size_t)program->nregs + 1, sizeof(int32_t));
    for (int32_t at = 0; homes != NULL && at < program->nnodes; at++) {
        if (program->nodes[at].reg >= 0) {
            homes[program->nodes[at].reg] = at;
        }
    }
    return homes;
}

Recall *
recall_make(Program *program, PyObject *const *flat, Py_ssize_t nflat)
{
    size_t nodes = (size_t)program->nnodes + 1;
    Recorder r = {.program = program, .flat = flat, .nflat = nflat};
    uint8_t *marks = PyMem_Calloc(nodes, 5);
    int32_t *homes = find_homes(program);
    r.made = recall_new(program);
    r.seen = PyMem_Calloc(nodes, sizeof(PyObject *));
    if (marks != NULL && homes != NULL && r.made != NULL && r.seen != NULL) {
        int collects = PyGC_Disable(); /* a dict that is made for its object must run nothing */
        r.certainty = marks;
        r.vouched = marks + nodes;
        r.typed = marks + 4 * nodes;
        record_nodes(&r);
        record_rest(&r, homes, marks + 2 * nodes, marks + 3 * nodes);
        if (collects) {
            PyGC_Enable();
        }
    }
    else {
        r.failed = 1;
    }
    if (r.failed && r.made != NULL) {
        recall_release(r.made);
        r.made = NULL;
    }
    PyMem_Free(marks);
    PyMem_Free(homes);
    PyMem_Free(r.seen);
    return r.made;
}
