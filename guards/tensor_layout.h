/* Where torch keeps what a tensor guard asks for, found out by comparing samples. */
#ifndef DYNACAP_TENSOR_LAYOUT_H
#define DYNACAP_TENSOR_LAYOUT_H

#include "fastcheck.h"

enum {
    INLINE_DIMS = 5, /* with more, a TensorImpl keeps its sizes elsewhere */
    TAIL_WORDS = 8,  /* room for them */
};

/* Offsets in bytes; 0: not found.  What is not found is asked of torch. */
typedef struct {
    Py_ssize_t impl;     /* in the Python object: the TensorImpl's address */
    Py_ssize_t keys;     /* in the TensorImpl: the dispatch keys */
    Py_ssize_t dims;     /* their number, then INLINE_DIMS sizes and as many strides */
    Py_ssize_t tail;     /* from here on dtype, device, flags and keys, `tail_words` of them */
    Py_ssize_t tail_words;
    Py_ssize_t autograd; /* the autograd record's address; NULL: requires_grad is False */
    Py_ssize_t flag;     /* in that record: the byte that is 1 where a leaf requires grad */
    uint64_t unset;      /* bit i: word i of the record is 0 in a leaf and not 0 in a result */
    uint64_t negative_bit, conjugate_bit; /* in the keys */
} TensorLayout;

extern TensorLayout tensor_layout;

/* A tensor's TensorImpl, borrowed; NULL where it is not known how to find it. */
static inline const void *
tensor_impl(PyObject *tensor)
{
    return tensor_layout.impl == 0 ? NULL
                                   : (const void *)(uintptr_t)word_at(tensor, tensor_layout.impl);
}

/* What autograd has recorded of a tensor; NULL: nothing. Only where it is known where that lies. */
static inline const void *
impl_record(const void *impl)
{
    return (const void *)(uintptr_t)word_at(impl, tensor_layout.autograd);
}

/* What requires_grad is, by that: 0, 1, or -1 where it cannot be told. */
int record_requires_grad(const void *record);

/* Find the layout from samples; see tensor_layout.py. */
PyObject *find_tensor_layout(PyObject *module, PyObject *args);

#endif
