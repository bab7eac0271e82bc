/* Which entries of a large table are worth a check, told by what differs between them.
 *
 * A *trait* is something that many entries demand of one argument, or of an item of a tuple or dict
 * of arguments, each a value of its own: the size of a dimension, a constant, a class.  Entries are
 * hashed by their values of all chosen traits; a call looks up those of its arguments.  Entries
 * that do not care about a trait are tried on every call.  Whether an entry fits is decided by its
 * guards alone: all that is taken for granted here is that one which demands something else does
 * not.
 */
#include "entry_index.h"

#include <string.h>

enum { MAX_TRAITS = 64 };

typedef enum { OF_CLASS, OF_IDENTITY, OF_CONSTANT, OF_LENGTH, OF_DIMS, OF_SIZE } Aspect;

typedef struct {
    int32_t argument;
    int32_t step; /* STEP_LOCAL: the argument itself; or that of an item */
    Py_ssize_t item;
    PyObject *key; /* borrowed from a program */
    Aspect aspect;
    int32_t dim;
    /* While traits are chosen: how many demand it, and whether not all the same. */
    Py_ssize_t count;
    uint64_t value;
    int differs;
} Trait;

struct EntryIndex {
    Py_ssize_t refs;
    PyObject *entries; /* owned */
    Trait traits[MAX_TRAITS];
    int ntraits;
    /* Entries with one hash lie together in `order`, from starts[slot] to starts[slot + 1]. */
    int32_t *order, *starts, *others;
    Py_ssize_t nslots, nothers;
};

/* A number for a constant that two alike share; 0: not one of the kinds that are told apart. */
static int
constant_number(PyObject *value, uint64_t *number)
{
    PyTypeObject *type = Py_TYPE(value);
    if (type == &PyFloat_Type) {
        double number_itself = PyFloat_AS_DOUBLE(value);
        memcpy(number, &number_itself, sizeof(*number));
    }
    else if (type == &PyLong_Type || type == &PyUnicode_Type || type == &PyBool_Type
             || value == Py_None) {
        *number = (uint64_t)PyObject_Hash(value);
    }
    else {
        return 0;
    }
    *number ^= (uintptr_t)type;
    return 1;
}

/* Traits of an entry. */

typedef void (*Visit)(void *context, const Trait *trait, uint64_t value);

static void
visit_tensor(const TensorSpec *spec, Trait *trait, Visit visit, void *context)
{
    trait->aspect = OF_DIMS;
    visit(context, trait, (uint64_t)spec->ndim);
    trait->aspect = OF_SIZE;
    for (int32_t i = 0; i < spec->ndim; i++) {
        if (spec->shape[i] != ANY) {
            trait->dim = i;
            visit(context, trait, (uint64_t)spec->shape[i]);
        }
    }
    trait->dim = 0;
}

static void
visit_check(const Program *program, const Check *check, Trait *trait, Visit visit, void *context)
{
    uint64_t number;
    switch (check->kind) {
    case CHECK_TYPE:
    case CHECK_IDENTITY:
        trait->aspect = check->kind == CHECK_TYPE ? OF_CLASS : OF_IDENTITY;
        visit(context, trait, (uintptr_t)operand_object(&check->operand));
        break;
    case CHECK_CONSTANT:
        if (constant_number(check->operand.obj, &number)) {
            trait->aspect = OF_CONSTANT;
            visit(context, trait, number);
        }
        break;
    case CHECK_LENGTH:
        trait->aspect = OF_LENGTH;
        visit(context, trait, (uint64_t)check->number);
        break;
    case CHECK_TENSOR:
        visit_tensor(&program->tensors[check->number], trait, visit, context);
        break;
    default:
        break;
    }
}

/* Where the value of a node stands among the arguments; 0: elsewhere. */
static int
place_among_arguments(const Program *program, const Node *node, Trait *trait)
{
    *trait = (Trait){.step = STEP_LOCAL};
    if (node->step == STEP_SEQ_ITEM) {
        trait->step = STEP_SEQ_ITEM;
        trait->item = node->index;
    }
    else if (node->step == STEP_DICT_ITEM && node->key.kind == BY_STRING) {
        trait->step = STEP_DICT_ITEM;
        trait->key = node->key.obj;
    }
    const Node *root = trait->step == STEP_LOCAL ? node : &program->nodes[node->base_node];
    trait->argument = (int32_t)root->index;
    return root->step == STEP_LOCAL && root->base < 0;
}

/* Show all that an entry demands of the arguments; 0 if it is not known what it demands. */
static int
visit_traits(PyObject *entry, Visit visit, void *context)
{
    PyObject *checker = ((EntryObject *)entry)->checker;
    Trait trait;
    if (checker == NULL || !PyObject_TypeCheck(checker, &Checker_Type)) {
        return 0;
    }
    const Program *program = &((CheckerObject *)checker)->program;
    for (Py_ssize_t at = 0; at < program->nnodes; at++) {
        const Node *node = &program->nodes[at];
        if ((node->base >= 0 && node->step != STEP_SEQ_ITEM && node->step != STEP_DICT_ITEM)
            || !place_among_arguments(program, node, &trait)) {
            continue;
        }
        for (int32_t i = node->first; i < node->end; i++) {
            visit_check(program, &program->checks[i], &trait, visit, context);
        }
    }
    return 1;
}

static int
is_same_trait(const Trait *a, const Trait *b)
{
    return a->argument == b->argument && a->step == b->step && a->item == b->item
           && a->aspect == b->aspect && a->dim == b->dim
           && (a->key == b->key
               || (a->key != NULL && b->key != NULL && PyUnicode_Compare(a->key, b->key) == 0));
}

static int
find_trait(const EntryIndex *index, const Trait *trait)
{
    int i = 0;
    while (i < index->ntraits && !is_same_trait(&index->traits[i], trait)) {
        i++;
    }
    return i;
}

static void
count_trait(void *context, const Trait *trait, uint64_t value)
{
    EntryIndex *index = context;
    int i = find_trait(index, trait);
    if (i == MAX_TRAITS) {
        return;
    }
    Trait *known = &index->traits[i];
    if (i == index->ntraits) {
        *known = *trait;
        known->value = value;
        index->ntraits++;
    }
    known->count++;
    known->differs |= known->value != value;
}

/* Keep what most entries care about and not all in the same way. */
static void
choose_traits(EntryIndex *index)
{
    Py_ssize_t size = PyTuple_GET_SIZE(index->entries);
    int kept = 0;
    for (Py_ssize_t i = 0; i < size; i++) {
        visit_traits(PyTuple_GET_ITEM(index->entries, i), count_trait, index);
    }
    for (int i = 0; i < index->ntraits; i++) {
        if (index->traits[i].differs && 4 * index->traits[i].count >= 3 * size) {
            index->traits[kept++] = index->traits[i];
        }
    }
    index->ntraits = kept;
}

static inline uint64_t
mixed(uint64_t hash, uint64_t value)
{
    hash = (hash ^ value) * 0x9E3779B97F4A7C15u;
    return hash ^ hash >> 29;
}

typedef struct {
    const EntryIndex *index;
    uint64_t values[MAX_TRAITS], found;
} Demands;

static void
note_trait(void *context, const Trait *trait, uint64_t value)
{
    Demands *demands = context;
    int i = find_trait(demands->index, trait);
    if (i < demands->index->ntraits) {
        demands->values[i] = value;
        demands->found |= (uint64_t)1 << i;
    }
}

/* The slot of an entry; -1: it must be tried always. */
static Py_ssize_t
slot_of_entry(const EntryIndex *index, PyObject *entry)
{
    Demands demands = {.index = index};
    uint64_t hash = 0;
    if (!visit_traits(entry, note_trait, &demands)) {
        return -1;
    }
    for (int i = 0; i < index->ntraits; i++) {
        if (!(demands.found >> i & 1)) {
            return -1;
        }
        hash = mixed(hash, demands.values[i]);
    }
    return (Py_ssize_t)(hash & (uint64_t)(index->nslots - 1));
}

/* Lay out the positions of entries by slot, within a slot in the order of the entries. */
static void
lay_out(EntryIndex *index, Py_ssize_t *slots)
{
    Py_ssize_t size = PyTuple_GET_SIZE(index->entries);
    int32_t placed = 0;
    for (Py_ssize_t i = 0; i < size; i++) {
        slots[i] = slot_of_entry(index, PyTuple_GET_ITEM(index->entries, i));
        if (slots[i] >= 0) {
            index->starts[slots[i]]++;
        }
        else {
            index->others[index->nothers++] = (int32_t)i;
        }
    }
    for (Py_ssize_t slot = 0; slot <= index->nslots; slot++) { /* counts become ends */
        placed += index->starts[slot];
        index->starts[slot] = placed;
    }
    for (Py_ssize_t i = size - 1; i >= 0; i--) { /* and, as the slots are filled, starts */
        if (slots[i] >= 0) {
            index->order[--index->starts[slots[i]]] = (int32_t)i;
        }
    }
}

EntryIndex *
index_make(PyObject *entries)
{
    Py_ssize_t size = PyTuple_GET_SIZE(entries);
    EntryIndex *index = PyMem_Calloc(1, sizeof(EntryIndex));
    Py_ssize_t *slots = PyMem_New(Py_ssize_t, size + 1);
    if (index == NULL || slots == NULL) {
        PyMem_Free(index);
        PyMem_Free(slots);
        return NULL;
    }
    index->refs = 1;
    index->entries = Py_NewRef(entries);
    for (index->nslots = 16; index->nslots < 2 * size;) {
        index->nslots *= 2;
    }
    index->order = PyMem_Calloc((size_t)size + 1, sizeof(int32_t));
    index->others = PyMem_Calloc((size_t)size + 1, sizeof(int32_t));
    index->starts = PyMem_Calloc((size_t)index->nslots + 2, sizeof(int32_t));
    if (index->order != NULL && index->others != NULL && index->starts != NULL) {
        choose_traits(index);
        lay_out(index, slots);
    }
    else {
        index_release(index);
        index = NULL;
    }
    PyMem_Free(slots);
    return index;
}

EntryIndex *
index_hold(EntryIndex *index)
{
    index->refs++;
    return index;
}

void
index_release(EntryIndex *index)
{
    if (index == NULL || --index->refs > 0) {
        return;
    }
    PyObject *entries = index->entries;
    PyMem_Free(index->order);
    PyMem_Free(index->others);
    PyMem_Free(index->starts);
    PyMem_Free(index);
    Py_DECREF(entries);
}

PyObject *
index_entries(const EntryIndex *index)
{
    return index->entries;
}

int
index_visit(EntryIndex *index, visitproc visit, void *arg)
{
    if (index != NULL && index->refs == 1) { /* a call that runs holds it too */
        Py_VISIT(index->entries);
    }
    return 0;
}

/* A call's values of the traits: 1, 0 if what entries in slots demand is not there, -1 if that
 * cannot be told. */

static int
argument_value(const Trait *trait, PyObject *const *flat, Py_ssize_t nflat, PyObject **value)
{
    PyObject *holder = trait->argument < nflat ? flat[trait->argument] : NULL;
    *value = holder;
    if (holder == NULL || trait->step == STEP_LOCAL) {
        return holder != NULL;
    }
    if (trait->step == STEP_SEQ_ITEM) {
        if (!PyTuple_CheckExact(holder)) {
            return -1;
        }
        *value = trait->item < PyTuple_GET_SIZE(holder) ? PyTuple_GET_ITEM(holder, trait->item)
                                                        : NULL;
    }
    else {
        if (!PyDict_CheckExact(holder) || !dict_has_only_str_keys(holder)) {
            return -1;
        }
        *value = PyDict_GetItemWithError(holder, trait->key);
    }
    return *value != NULL;
}

static int
trait_value(const Trait *trait, PyObject *value, uint64_t *number)
{
    const int64_t *sizes;
    int32_t ndim;
    switch (trait->aspect) {
    case OF_CLASS:
        *number = (uintptr_t)Py_TYPE(value);
        return 1;
    case OF_IDENTITY:
        *number = (uintptr_t)value;
        return 1;
    case OF_CONSTANT:
        return constant_number(value, number);
    case OF_LENGTH:
        *number = (uint64_t)raw_length(value);
        return 1;
    default:
        break;
    }
    int told = tensor_sizes(value, &sizes, &ndim);
    if (told == 1) {
        *number = trait->aspect == OF_DIMS   ? (uint64_t)ndim
                  : trait->dim < ndim        ? (uint64_t)sizes[trait->dim]
                                             : (uint64_t)-1;
    }
    return told;
}

Py_ssize_t
index_find(const EntryIndex *index, PyObject *const *flat, Py_ssize_t nflat,
           const int32_t **positions)
{
    uint64_t hash = 0, number;
    for (int i = 0; i < index->ntraits; i++) {
        PyObject *value;
        int told = argument_value(&index->traits[i], flat, nflat, &value);
        if (told == 1) {
            told = trait_value(&index->traits[i], value, &number);
        }
        if (told != 1) {
            PyErr_Clear();
            return told;
        }
        hash = mixed(hash, number);
    }
    Py_ssize_t slot = (Py_ssize_t)(hash & (uint64_t)(index->nslots - 1));
    *positions = index->order + index->starts[slot];
    return index->starts[slot + 1] - index->starts[slot];
}

Py_ssize_t
index_others(const EntryIndex *index, const int32_t **positions)
{
    *positions = index->others;
    return index->nothers;
}
