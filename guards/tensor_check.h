/* Tensors: what a guard expects of one, and how it is read without torch's headers. */
#ifndef DYNACAP_TENSOR_CHECK_H
#define DYNACAP_TENSOR_CHECK_H

#include "tensor_layout.h"

#define ANY (-1) /* a size, a stride or a flag that is not looked at */

typedef struct {
    Operand type;
    PyObject *dtype; /* owned */
    int32_t device_type, device_id;
    int code, bits, lanes; /* of the dtype; code ANY: DLPack cannot tell it from others */
    int32_t ndim;
    int64_t *shape, *stride; /* ndim each, one allocation */
    int requires_grad, is_conj, is_neg, may_be_conj, is_inference;
    PyObject *holds; /* owned; the guard's meaning in Python */
    uint64_t tail[TAIL_WORDS]; /* of the last tensor that passed, if there is one: what its */
    int has_last;              /* TensorImpl says of dtype, device and dispatch keys */
} TensorSpec;

/* The spec is a tuple in this order; see tensor_lowering.py. */
int tensor_spec_init(TensorSpec *spec, PyObject *fields);
void tensor_spec_clear(TensorSpec *spec);
int tensor_spec_visit(TensorSpec *spec, visitproc visit, void *arg);

/* Whether a value, held by the caller, is such a tensor: 1, 0, or -1 with an exception. */
int tensor_spec_matches(TensorSpec *spec, PyObject *value);

/* A tensor that passed, and where its metadata lay.  `spec` is the position of what is expected of
 * it, `like` that of a spec which says the same, for fewer to be read where many tensors are alike. */
typedef struct {
    PyObject *value; /* borrowed */
    const void *impl, *record;
    int32_t spec, like;
} KnownTensor;

/* Note where the metadata of a tensor lies that has just passed: 1; 0: that cannot be known. */
int tensor_note(const TensorSpec *specs, KnownTensor *known);

/* Whether what passes one of the two passes the other, and their last tensors were alike. */
int tensor_specs_alike(const TensorSpec *left, const TensorSpec *right);

/* The first, from `from` on, of which memory does not show that it passes still; `count`: all do.
 * Runs no code.  The values are alive. */
Py_ssize_t tensors_as_known(const TensorSpec *specs, const KnownTensor *known, Py_ssize_t from,
                            Py_ssize_t count);

/* The bytes between which a plain tensor's elements lie: 1, or 0 where DLPack does not tell. */
typedef struct {
    int32_t device_type, device_id;
    uintptr_t low, high;
} Extent;
int tensor_extent(PyObject *value, Extent *extent);

/* The sizes of a plain tensor, where they lie: 1; 0 for anything else; -1: that cannot be told.
 * Behind room for INLINE_DIMS of them lie as many strides, then the offset into the storage. */
int tensor_sizes(PyObject *value, const int64_t **sizes, int32_t *ndim);

/* Where among those a number of this name lies ("size", "stride", "storage_offset"): 0, or -1. */
int tensor_number_place(PyObject *name, Py_ssize_t dim, Py_ssize_t *place);

/* Look torch's accessors up; to be called before a spec is used. */
PyObject *bind_torch(PyObject *module, PyObject *torch);

#endif
