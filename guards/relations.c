/* Relations between several values that a walk has read. */
#include "walk.h"

#include <stdlib.h>

enum { FEW_VALUES = 8 };

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

/* What a relation says of its values, given as a row. */
static int
values_relate(Relation *relation, PyObject *const *values)
{
    int holds = SIZES_DOUBT;
    switch (relation->kind) {
    case RELATE_DISTINCT:
        return are_distinct(values, relation->size);
    case RELATE_APART:
        return are_apart(relation, values);
    case RELATE_SIZES:
        holds = size_program_run(&relation->sizes, values);
        break;
    default:
        break;
    }
    return holds == SIZES_DOUBT ? check_call(relation->holds, values, relation->size) : holds;
}

int
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
    int holds = values_relate(relation, values);
    if (values != few) {
        PyMem_Free(values);
    }
    return holds;
}
