/* The functions that compiled libraries share: memory, tensors over it, the dispatcher's values. */
#include "host.h"

#include "graph.h"

#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

enum { CPU = 0, NO_INDEX = -1, ALIGNMENT = 64, KEPT_BYTES = 64 << 20 };

/* Scratch memory: the last block that was given back is kept, as long as it is not large, and
 * whoever asks next takes it.  Its size stands in front of it. */
typedef struct {
    _Alignas(ALIGNMENT) int64_t size;
} Head;

static _Atomic(Head *) kept;

static char *
scratch(int64_t size)
{
    Head *head = atomic_exchange(&kept, NULL);
    if (head != NULL && head->size < size) {
        free(head);
        head = NULL;
    }
    if (head == NULL) {
        int64_t rounded = (size + ALIGNMENT - 1) / ALIGNMENT * ALIGNMENT;
        head = aligned_alloc(ALIGNMENT, sizeof(Head) + (size_t)rounded);
        if (head == NULL) {
            return NULL;
        }
        head->size = rounded;
    }
    return (char *)(head + 1);
}

static void
release(char *block)
{
    Head *head = (Head *)block - 1;
    if (head->size <= KEPT_BYTES) {
        head = atomic_exchange(&kept, head);
    }
    free(head);
}

static void
drop(Tensor *tensor)
{
    if (*tensor != NULL) {
        torch.delete_tensor(*tensor);
        *tensor = NULL;
    }
}

static void *
data(Tensor tensor)
{
    void *found = NULL;
    torch.data_ptr(tensor, &found);
    return found;
}

static int64_t
size(Tensor tensor, int dim)
{
    int64_t found = 0;
    torch.size(tensor, dim, &found);
    return found;
}

static int64_t
stride(Tensor tensor, int dim)
{
    int64_t found = 0;
    torch.stride(tensor, dim, &found);
    return found;
}

static Tensor
same(Tensor tensor)
{
    Tensor made = NULL;
    torch.new_handle(tensor, &made);
    return made;
}

static int
blob(void *at, int ndim, const int64_t *sizes, const int64_t *strides, int dtype, Tensor *made)
{
    return torch.from_blob(at, ndim, sizes, strides, 0, dtype, CPU, NO_INDEX, made);
}

static int
empty(int ndim, const int64_t *sizes, const int64_t *strides, int dtype, Tensor *made)
{
    return torch.empty_strided(ndim, sizes, strides, dtype, CPU, NO_INDEX, made);
}

/* Put a tensor with these strides in `place`: the one that is given, or a copy of it. */
static int
lay(Tensor tensor, int ndim, const int64_t *sizes, const int64_t *strides, int dtype, Tensor *place)
{
    int alike = 1;
    for (int i = 0; i < ndim && alike; i++) {
        alike = sizes[i] == 1 || stride(tensor, i) == strides[i];
    }
    if (alike) {
        if (*place == NULL) {
            *place = same(tensor);
        }
        return 0;
    }
    Tensor made = NULL;
    if (empty(ndim, sizes, strides, dtype, &made) != 0 || torch.copy(made, tensor, 0) != 0) {
        drop(&made);
        return 1;
    }
    drop(place);
    *place = made;
    return 0;
}

/* A view of a tensor that was made here: nobody has seen it yet. */
static int
share(Tensor base, int ndim, const int64_t *sizes, const int64_t *strides, int64_t offset,
      Tensor *made)
{
    return torch.reinterpret(base, ndim, sizes, strides, offset, made);
}

static Value
own(Tensor tensor)
{
    return (Value)(uintptr_t)same(tensor);
}

static Value
some(Value value)
{
    Value *made = NULL;
    if (torch.new_value(&made) == 0) {
        *made = value;
    }
    return (Value)(uintptr_t)made;
}

static Value
list(int count, Value *items)
{
    List made = NULL;
    torch.new_list((size_t)count, &made);
    for (int i = 0; i < count; i++) {
        torch.list_push(made, items[i]);
    }
    return (Value)(uintptr_t)made;
}

static Value
string(const char *text)
{
    String made = NULL;
    torch.new_string(text, strlen(text), &made);
    return (Value)(uintptr_t)made;
}

/* A view of an input, as autograd and version counters are to see it. */
static int
alias(Tensor base, int ndim, const int64_t *sizes, const int64_t *strides, int64_t offset,
      Tensor *made)
{
    int64_t start = 0;
    if (torch.storage_offset(base, &start) != 0) {
        return 1;
    }
    Value stack[4] = {own(base), 0, 0, some((Value)(start + offset))};
    const int64_t *numbers[] = {sizes, strides};
    for (int i = 0; i < 2; i++) {
        stack[1 + i] = list(ndim, (Value *)numbers[i]);
    }
    if (torch.dispatch("aten::as_strided", "", stack) != 0) {
        return 1;
    }
    *made = (Tensor)(uintptr_t)stack[0];
    return 0;
}

/* A view of a tensor that was made here and is given too: a change of either counts for both, so
 * that autograd finds out that what it has saved was changed. */
static int
twin(Tensor base, int ndim, const int64_t *sizes, const int64_t *strides, int64_t offset,
     Tensor *made)
{
    Tensor view = NULL;
    if (alias(base, ndim, sizes, strides, offset, &view) != 0) {
        return share(base, ndim, sizes, strides, offset, made);
    }
    Value stack[1] = {(Value)(uintptr_t)view};
    if (torch.dispatch("aten::detach", "", stack) != 0) {
        return 1;
    }
    *made = (Tensor)(uintptr_t)stack[0];
    return 0;
}

static void
keep(Value value, Tensor *place)
{
    Tensor tensor = (Tensor)(uintptr_t)value;
    if (place != NULL) {
        *place = tensor;
    }
    else {
        drop(&tensor);
    }
}

/* Call an operator whose arguments are on the stack.  It gives `count` tensors, or, if that is
 * negative, a list of so many. */
static int
dispatch(const char *name, const char *overload, int room, Value *stack, int count,
         Tensor **results)
{
    if (torch.dispatch(name, overload, stack) != 0) {
        return 1;
    }
    for (int i = 0; i < count; i++) {
        keep(stack[i], results[i]);
    }
    if (count < 0) {
        List given = (List)(uintptr_t)stack[0];
        for (int i = 0; i < -count; i++) {
            Value value = 0;
            if (torch.list_item(given, (size_t)i, &value) == 0) {
                keep(value, results[i]);
            }
        }
        torch.delete_list(given);
    }
    return 0;
}

/* How many threads what this thread calls may use, up to now; `count` from now on, unless it is 0.
 * MKL, oneDNN and torch all ask OpenMP. */
static int
threads(int count)
{
    if (torch.get_threads == NULL || torch.set_threads == NULL) {
        return 0;
    }
    int before = torch.get_threads();
    if (count > 0) {
        torch.set_threads(count);
    }
    return before;
}

static const struct {
    const char *name;
    void *function;
} offered[] = {
    {"dynacap_stride", stride},       {"dynacap_python", graph_python},
    {"dynacap_dispatch", dispatch},   {"dynacap_scratch", scratch},
    {"dynacap_release", release},     {"dynacap_some", some},
    {"dynacap_list", list},           {"dynacap_string", string},
    {"dynacap_own", own},             {"dynacap_blob", blob},
    {"dynacap_lay", lay},
    {"dynacap_empty", empty},         {"dynacap_share", share},
    {"dynacap_alias", alias},         {"dynacap_data", data},
    {"dynacap_twin", twin},
    {"dynacap_same", same},           {"dynacap_size", size},
    {"dynacap_drop", drop},           {"dynacap_threads", threads},
};

void *
host_symbol(const char *name)
{
    for (size_t i = 0; i < sizeof(offered) / sizeof(offered[0]); i++) {
        if (strcmp(name, offered[i].name) == 0) {
            return offered[i].function;
        }
    }
    return torch_symbol(name);
}
