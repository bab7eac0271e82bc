/* Remembering: a second look at all that the walk has just read, which notes what vouches for it.
 *
 * Nothing runs meanwhile, so all values are of one moment.  A node is remembered as an OBJECT
 * where the facts say that it is the very one (what a dict in a known state holds), and as a PLACE
 * where they only say at which address it lies (an item of a list): another object may come to lie
 * there, so what makes objects unchangeable proves nothing, and all that is read of it is a fact.
 */
#include "recall.h"

enum { MAX_CHANGES = 4, KNOWN_WEAK = 8, MAX_LIKES = 32 };

typedef enum { LOST, PLACE, OBJECT } Certainty;

typedef struct {
    Program *program;
    PyObject *const *flat;
    Py_ssize_t nflat;
    Recall *made;
    /* By node: the value, how sure it is, and whether its state and its type are vouched for. */
    PyObject **seen;
    uint8_t *certainty, *vouched, *typed;
    const void *weak[KNOWN_WEAK]; /* places of weak references, of which there are facts */
    int nweak;
    int32_t likes[MAX_LIKES]; /* specs that known tensors are compared with */
    int nlikes;
    int failed; /* no memory */
} Recorder;

/* Each `vouch` function: 1 if a fact now says so, 0 if that cannot be had. */

static int
vouch_word(Recorder *r, const void *place, uint64_t expected)
{
    Recall *made = r->made;
    if (made->nfacts == made->room) {
        Py_ssize_t room = 2 * made->room + 64;
        Fact *facts = PyMem_Resize(made->facts, Fact, room);
        if (facts == NULL) {
            r->failed = 1;
            return 0;
        }
        made->facts = facts;
        made->room = room;
    }
    made->facts[made->nfacts++] = (Fact){place, expected};
    return 1;
}

static int
vouch_pointer(Recorder *r, const void *place, PyObject *expected)
{
    return vouch_word(r, place, (uintptr_t)expected);
}

/* That the object is the one meant, which may be known by a weak reference. */
static int
vouch_operand(Recorder *r, const Operand *operand)
{
    if (operand->kind != BY_WEAKREF) {
        return 1;
    }
    PyWeakReference *weak = (PyWeakReference *)operand->obj;
    for (int i = 0; i < Py_MIN(r->nweak, KNOWN_WEAK); i++) {
        if (r->weak[i] == weak) {
            return 1;
        }
    }
    r->weak[r->nweak++ % KNOWN_WEAK] = weak;
    return vouch_pointer(r, &weak->wr_object, weak->wr_object);
}

/* Whether objects of this type stay of this type. */
static int
is_for_good(PyTypeObject *type)
{
    return (type->tp_flags & Py_TPFLAGS_IMMUTABLETYPE) != 0 && type != &PyModule_Type;
}

/* That the value of this node is of the type of which it is. */
static int
vouch_type(Recorder *r, int32_t at)
{
    PyObject *value = r->seen[at];
    if (!r->typed[at]) {
        r->typed[at] = (r->certainty[at] == OBJECT && is_for_good(Py_TYPE(value)))
                       || vouch_pointer(r, &value->ob_type, (PyObject *)Py_TYPE(value));
    }
    return r->typed[at];
}

static int
vouch_dict(Recorder *r, PyObject *dict)
{
    const void *place = dict_tag_place(dict);
    return place != NULL ? vouch_word(r, place, dict_tag(dict)) : watch_dict(dict, r->made->pulse);
}

/* That the dict or class which is the value of this node is in the state in which it is. */
static int
vouch_state(Recorder *r, int32_t at)
{
    PyObject *value = r->seen[at];
    if (r->vouched[at]) {
        return 1;
    }
    if (PyType_Check(value)) {
        uint64_t tag = type_tag((PyTypeObject *)value);
        const void *place = type_tag_place((PyTypeObject *)value);
        r->vouched[at] = tag != 0 && vouch_word(r, place, word_at(place, 0));
    }
    else if (PyDict_Check(value)) {
        int is_dict = r->program->nodes[at].step == STEP_INSTANCE_DICT || vouch_type(r, at);
        r->vouched[at] = is_dict && vouch_dict(r, value);
    }
    return r->vouched[at];
}

/* Steps. */

static Certainty
certain_if(int vouched, Certainty certainty)
{
    return vouched ? certainty : LOST;
}

static Certainty
record_argument(Recorder *r, Node *node, PyObject *value)
{
    /* Containers mostly come anew with each call. */
    if (!node->has_children || node->changes >= MAX_CHANGES || PyTuple_CheckExact(value)
        || PyDict_CheckExact(value) || PyList_CheckExact(value)) {
        return LOST;
    }
    r->made->roots[r->made->nroots++] = (Root){node, value};
    return PLACE;
}

/* A dict in a known state is known for the one that it was. */
static Certainty
record_instance_dict(Recorder *r, int32_t at, Node *node, PyObject *value)
{
    PyObject **place = _PyObject_GetDictPtr(r->seen[node->base_node]);
    /* Where the pointer lies is a matter of the type. */
    return certain_if(place != NULL && *place == value && vouch_type(r, node->base_node)
                          && vouch_pointer(r, place, value) && vouch_state(r, at),
                      OBJECT);
}

/* An item of a tuple that is a PLACE, if that is the type of the node which it belongs to. */
static Certainty
record_tuple_item(Recorder *r, PyObject *tuple, PyObject *value, Py_ssize_t i)
{
    const void *size = &((PyVarObject *)tuple)->ob_size;
    return certain_if(vouch_word(r, size, (uint64_t)Py_SIZE(tuple))
                          && vouch_pointer(r, &PyTuple_GET_ITEM(tuple, i), value),
                      PLACE);
}

static Certainty
record_item(Recorder *r, Node *node, PyObject *value)
{
    PyObject *base = r->seen[node->base_node];
    if (PyTuple_Check(base) && r->certainty[node->base_node] == OBJECT) {
        return OBJECT;
    }
    if (!vouch_type(r, node->base_node)) {
        return LOST;
    }
    if (PyTuple_Check(base)) {
        return record_tuple_item(r, base, value, node->index);
    }
    PyListObject *list = (PyListObject *)base;
    return certain_if(vouch_word(r, &((PyVarObject *)list)->ob_size, (uint64_t)Py_SIZE(base))
                          && vouch_pointer(r, &list->ob_item, (PyObject *)list->ob_item)
                          && vouch_pointer(r, &list->ob_item[node->index], value),
                      PLACE);
}

/* What the base has in a field of its struct, which can be set; `place` NULL: in no such field. */
static Certainty
record_field(Recorder *r, Node *node, PyObject *const *place, PyObject *value)
{
    return certain_if(place != NULL && *place == value && vouch_type(r, node->base_node)
                          && vouch_pointer(r, place, value),
                      PLACE);
}

/* An item of a tuple that a function has in a field of its struct. */
static Certainty
record_field_item(Recorder *r, Node *node, PyObject *const *place, PyObject *value)
{
    return record_field(r, node, place, *place) == LOST
               ? LOST
               : record_tuple_item(r, *place, value, node->index);
}

static Certainty
record_function(Recorder *r, Node *node, PyObject *value)
{
    PyFunctionObject *function = (PyFunctionObject *)r->seen[node->base_node];
    if (node->step == STEP_FUNCTION_DEFAULT) {
        return record_field_item(r, node, &function->func_defaults, value);
    }
    if (r->certainty[node->base_node] == OBJECT) {
        return OBJECT; /* its globals and cells are its own for good */
    }
    switch (node->step) {
    case STEP_FUNCTION_GLOBALS:
        return record_field(r, node, &function->func_globals, value);
    case STEP_FUNCTION_BUILTINS:
        return record_field(r, node, &function->func_builtins, value);
    default:
        return record_field_item(r, node, &function->func_closure, value);
    }
}

/* Where a field of a function lies that is read through a descriptor; NULL: it is no such field. */
static PyObject *const *
function_field(const Node *node, PyObject *base)
{
    PyFunctionObject *function = (PyFunctionObject *)base;
    if (!PyFunction_Check(base)) {
        return NULL;
    }
    if (PyUnicode_CompareWithASCIIString(node->name, "__code__") == 0) {
        return &function->func_code;
    }
    if (PyUnicode_CompareWithASCIIString(node->name, "__kwdefaults__") == 0) {
        return &function->func_kwdefaults;
    }
    return NULL;
}

static Certainty
record_sys_module(Recorder *r)
{
    return certain_if(vouch_dict(r, PyImport_GetModuleDict()), OBJECT);
}

static Certainty
record_step(Recorder *r, int32_t at, Node *node, PyObject *value)
{
    PyObject *base = node->base < 0 ? NULL : r->seen[node->base_node];
    switch (node->step) {
    case STEP_LOCAL:
        return record_argument(r, node, value);
    case STEP_CONST:
        return certain_if(vouch_operand(r, &node->key), OBJECT);
    case STEP_SYS_MODULE:
        return record_sys_module(r);
    case STEP_DICT_KEY: /* an OrderedDict can change its order without changing as a dict */
        return certain_if(!PyODict_Check(base) && vouch_state(r, node->base_node), OBJECT);
    case STEP_DICT_ITEM:
    case STEP_CLASS_ATTR:
    case STEP_SUPER_ATTR:
        return certain_if(vouch_state(r, node->base_node), OBJECT);
    case STEP_INSTANCE_DICT:
        return record_instance_dict(r, at, node, value);
    case STEP_TYPE_OF:
        return certain_if(vouch_type(r, node->base_node), PLACE);
    case STEP_SEQ_ITEM:
        return record_item(r, node, value);
    case STEP_CELL_CONTENTS:
        return record_field(r, node, &((PyCellObject *)base)->ob_ref, value);
    case STEP_ATTR:
        return record_field(r, node, function_field(node, base), value);
    default:
        return record_function(r, node, value);
    }
}

/* Checks. */

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
    case CHECK_TYPE:
        return vouch_operand(r, &check->operand) && vouch_type(r, at);
    case CHECK_IDENTITY:
        return vouch_operand(r, &check->operand);
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

static int
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
static int
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

/* What a step reads, borrowed; NULL where it cannot be had, or not without running code. */
static PyObject *
read_quietly(Recorder *r, Node *node)
{
    PyObject *base = node->base < 0 ? NULL : r->seen[node->base_node];
    if (node->base >= 0 && r->certainty[node->base_node] == LOST) {
        return NULL;
    }
    if (node->step == STEP_ATTR) {
        PyObject *const *place = function_field(node, base);
        return place == NULL ? NULL : *place;
    }
    if (node->step == STEP_DEQUE_ITEM || node->step == STEP_CALL
        || node->step == STEP_TENSOR_NUMBER) {
        return NULL;
    }
    int owned = 0;
    PyObject *value = take_step(node, base, r->flat, r->nflat, &owned);
    if (value == NULL) {
        PyErr_Clear();
    }
    return value;
}

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
