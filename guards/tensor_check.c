/* Reading tensors through the DLPack exchange table and torch's own descriptors.
 *
 * The table (DLPack 1.3, torch.Tensor.__dlpack_c_exchange_api__) tells dtype, device, shape and
 * strides.  It sees neither requires_grad nor the conjugate and negative bits, and takes some
 * dtypes for others (int1 for int8).  Where it is known where torch keeps all of these
 * (tensor_layout.c), a tensor is compared with the last one that passed, in a tenth of the time.
 */
#include "tensor_check.h"
#include "tensor_layout.h"

/* The parts of dlpack.h that are used, with its layout. */
typedef struct {
    void *data;
    int32_t device_type, device_id;
    int32_t ndim;
    uint8_t code, bits;
    uint16_t lanes;
    int64_t *shape, *strides;
    uint64_t byte_offset;
} DLTensor;

typedef struct {
    uint32_t major, minor;
    void *previous, *managed_allocator, *managed_from_py, *managed_to_py;
    int (*dltensor_from_py)(void *py_object, DLTensor *out);
    void *current_work_stream;
} DLPackExchangeAPI;

static int (*read_dltensor)(void *py_object, DLTensor *out);
static PyTypeObject *tensor_type, *parameter_type; /* owned */
static PyObject *get_requires_grad, *get_dtype;    /* owned: getset descriptors */
static PyObject *is_neg, *is_conj, *is_inference;  /* owned: method descriptors */

static int
find_attribute(PyObject *holder, const char *name, PyObject **place)
{
    PyObject *found = PyObject_GetAttrString(holder, name);
    if (found == NULL) {
        return -1;
    }
    Py_XSETREF(*place, found);
    return 0;
}

/* Without the table, every tensor goes the slow way. */
static void
find_exchange_table(PyObject *tensor)
{
    PyObject *capsule = PyObject_GetAttrString(tensor, "__dlpack_c_exchange_api__");
    if (capsule != NULL && PyCapsule_IsValid(capsule, "dlpack_exchange_api")) {
        DLPackExchangeAPI *api = PyCapsule_GetPointer(capsule, "dlpack_exchange_api");
        if (api->major == 1) {
            read_dltensor = api->dltensor_from_py;
        }
    }
    PyErr_Clear();
    Py_XDECREF(capsule);
}

PyObject *
bind_torch(PyObject *Py_UNUSED(module), PyObject *torch)
{
    PyObject *nn = NULL, *c = NULL, *base = NULL, *result = NULL;
    if (find_attribute(torch, "nn", &nn) < 0 || find_attribute(torch, "_C", &c) < 0
        || find_attribute(c, "TensorBase", &base) < 0
        || find_attribute(torch, "Tensor", (PyObject **)&tensor_type) < 0
        || find_attribute(nn, "Parameter", (PyObject **)&parameter_type) < 0
        || find_attribute(base, "requires_grad", &get_requires_grad) < 0
        || find_attribute(base, "dtype", &get_dtype) < 0
        || find_attribute(base, "is_neg", &is_neg) < 0
        || find_attribute(base, "is_conj", &is_conj) < 0
        || find_attribute(base, "is_inference", &is_inference) < 0) {
        goto done;
    }
    find_exchange_table((PyObject *)tensor_type);
    result = Py_NewRef(Py_None);
done:
    Py_XDECREF(nn);
    Py_XDECREF(c);
    Py_XDECREF(base);
    return result;
}

/* What a getset descriptor or a method without arguments says; a new reference. */
static PyObject *
ask(PyObject *descriptor, PyObject *value)
{
    if (Py_IS_TYPE(descriptor, &PyGetSetDescr_Type)) {
        PyGetSetDef *def = ((PyGetSetDescrObject *)descriptor)->d_getset;
        return def->get(value, def->closure);
    }
    if (Py_IS_TYPE(descriptor, &PyMethodDescr_Type)) {
        PyMethodDef *def = ((PyMethodDescrObject *)descriptor)->d_method;
        if (def->ml_flags == METH_NOARGS) {
            return def->ml_meth(value, NULL);
        }
    }
    return PyObject_CallOneArg(descriptor, value);
}

static int
answers(PyObject *descriptor, PyObject *value, PyObject *wanted)
{
    PyObject *found = ask(descriptor, value);
    if (found == NULL) {
        return -1;
    }
    int same = found == wanted;
    Py_DECREF(found);
    return same;
}

static int
flag_is(PyObject *descriptor, PyObject *value, int wanted)
{
    return wanted == ANY ? 1 : answers(descriptor, value, wanted ? Py_True : Py_False);
}

/* Whether the negative and the conjugate bit are as expected. */
static int
bits_match(const TensorSpec *spec, PyObject *value)
{
    const TensorLayout *layout = &tensor_layout;
    const void *impl = tensor_impl(value);
    if (impl != NULL && layout->keys != 0) {
        uint64_t wanted = (spec->is_neg ? layout->negative_bit : 0)
                          | (spec->is_conj ? layout->conjugate_bit : 0);
        uint64_t both = layout->negative_bit | layout->conjugate_bit;
        return (word_at(impl, layout->keys) & both) == wanted;
    }
    int same = flag_is(is_neg, value, spec->is_neg);
    if (same == 1 && spec->may_be_conj) {
        same = flag_is(is_conj, value, spec->is_conj);
    }
    return same;
}

static int
dims_match(const int64_t *wanted, const int64_t *found, int32_t ndim)
{
    for (int32_t i = 0; i < ndim; i++) {
        if (wanted[i] != found[i] && wanted[i] != ANY) {
            return 0;
        }
    }
    return 1;
}

static int
layout_matches(const TensorSpec *spec, const DLTensor *found)
{
    return spec->ndim == found->ndim && spec->device_type == found->device_type
           && spec->device_id == found->device_id
           && (spec->code == ANY
               || (spec->code == found->code && spec->bits == found->bits
                   && spec->lanes == found->lanes))
           && dims_match(spec->shape, found->shape, spec->ndim)
           && dims_match(spec->stride, found->strides, spec->ndim);
}

static int
ask_guard(const TensorSpec *spec, PyObject *value)
{
    PyObject *answer = PyObject_CallOneArg(spec->holds, value);
    if (answer == NULL) {
        return -1;
    }
    int holds = PyObject_IsTrue(answer);
    Py_DECREF(answer);
    return holds;
}

static int
requires_grad_matches(const TensorSpec *spec, PyObject *value, const void *impl)
{
    int known = impl == NULL || tensor_layout.autograd == 0
                    ? -1
                    : record_requires_grad(impl_record(impl));
    return known >= 0 ? known == spec->requires_grad
                      : flag_is(get_requires_grad, value, spec->requires_grad);
}

/* The way through torch's interfaces, which any tensor can take. */
static int
asked_matches(TensorSpec *spec, PyObject *value)
{
    DLTensor found;
    if (read_dltensor == NULL) {
        return ask_guard(spec, value);
    }
    if (read_dltensor(value, &found) != 0) {
        PyErr_Clear(); /* of a layout that DLPack has no words for */
        return ask_guard(spec, value);
    }
    if (!layout_matches(spec, &found)) {
        return 0;
    }
    int same = 1;
    if (spec->code == ANY) {
        same = answers(get_dtype, value, spec->dtype);
    }
    if (same == 1) {
        same = bits_match(spec, value);
    }
    if (same == 1) {
        same = flag_is(is_inference, value, spec->is_inference);
    }
    return same;
}

/* Whether the tensor's own memory shows what the spec expects: what is said of dtype, device and
 * dispatch keys is what the last tensor that passed says of them. */
static inline int
is_like_last(const TensorSpec *spec, const void *impl)
{
    const TensorLayout *layout = &tensor_layout;
    const char *dims = (const char *)impl + layout->dims;
    const int64_t *sizes = (const int64_t *)(dims + sizeof(int64_t));
    if (word_at(dims, 0) != (uint64_t)spec->ndim || !dims_match(spec->shape, sizes, spec->ndim)
        || !dims_match(spec->stride, sizes + INLINE_DIMS, spec->ndim)) {
        return 0;
    }
    for (Py_ssize_t i = 0; i < layout->tail_words; i++) {
        if (word_at(impl, layout->tail + i * 8) != spec->tail[i]) {
            return 0;
        }
    }
    return 1;
}

int
tensor_spec_matches(TensorSpec *spec, PyObject *value)
{
    if (!operand_is(&spec->type, (PyObject *)Py_TYPE(value))) {
        return 0;
    }
    const void *impl = tensor_layout.dims == 0 ? NULL : tensor_impl(value);
    if (impl == NULL || !spec->has_last || !is_like_last(spec, impl)) {
        int same = asked_matches(spec, value);
        if (same != 1) {
            return same;
        }
        spec->has_last = impl != NULL && spec->ndim <= INLINE_DIMS;
        if (spec->has_last) {
            memcpy(spec->tail, (const char *)impl + tensor_layout.tail,
                   (size_t)tensor_layout.tail_words * 8);
        }
    }
    return requires_grad_matches(spec, value, impl);
}

int
tensor_note(const TensorSpec *specs, KnownTensor *known)
{
    const TensorSpec *spec = &specs[known->spec];
    const void *impl = tensor_impl(known->value);
    if (impl == NULL || !spec->has_last || tensor_layout.autograd == 0) {
        return 0;
    }
    known->like = known->spec;
    known->impl = impl;
    known->record = impl_record(impl);
    return tensors_as_known(specs, known, 0, 1) == 1;
}

int
tensor_specs_alike(const TensorSpec *left, const TensorSpec *right)
{
    size_t dims = (size_t)left->ndim * 2 * sizeof(int64_t);
    return operand_object(&left->type) == operand_object(&right->type)
           && left->dtype == right->dtype && left->device_type == right->device_type
           && left->device_id == right->device_id && left->ndim == right->ndim
           && left->requires_grad == right->requires_grad && left->is_conj == right->is_conj
           && left->is_neg == right->is_neg && left->is_inference == right->is_inference
           && memcmp(left->shape, right->shape, dims) == 0
           && memcmp(left->tail, right->tail, sizeof(left->tail)) == 0;
}

static inline int
is_as_known(const TensorSpec *like, const KnownTensor *known)
{
    const void *impl = known->impl;
    return operand_is(&like->type, (PyObject *)Py_TYPE(known->value))
           && tensor_impl(known->value) == impl && is_like_last(like, impl)
           && impl_record(impl) == known->record
           && record_requires_grad(known->record) == like->requires_grad;
}

Py_ssize_t
tensors_as_known(const TensorSpec *specs, const KnownTensor *known, Py_ssize_t from,
                 Py_ssize_t count)
{
    Py_ssize_t i = from;
    while (i < count && is_as_known(&specs[known[i].like], &known[i])) {
        i++;
    }
    return i;
}

int
tensor_extent(PyObject *value, Extent *extent)
{
    DLTensor found;
    PyTypeObject *type = Py_TYPE(value);
    if (read_dltensor == NULL || (type != tensor_type && type != parameter_type)) {
        return 0;
    }
    if (read_dltensor(value, &found) != 0) {
        PyErr_Clear();
        return 0;
    }
    int64_t size = (found.bits * found.lanes + 7) / 8, low = 0, high = size;
    for (int32_t i = 0; i < found.ndim; i++) {
        int64_t reach = (found.shape[i] - 1) * found.strides[i] * size;
        if (found.shape[i] == 0) {
            low = high = 0;
            break;
        }
        low += reach < 0 ? reach : 0;
        high += reach > 0 ? reach : 0;
    }
    uintptr_t start = (uintptr_t)found.data + found.byte_offset;
    *extent = (Extent){found.device_type, found.device_id, start + low, start + high};
    return 1;
}

int
tensor_sizes(PyObject *value, const int64_t **sizes, int32_t *ndim)
{
    PyTypeObject *type = Py_TYPE(value);
    if (type != tensor_type && type != parameter_type) {
        return 0;
    }
    const void *impl = tensor_layout.dims == 0 ? NULL : tensor_impl(value);
    if (impl == NULL || word_at(impl, tensor_layout.dims) > INLINE_DIMS) {
        return -1;
    }
    *ndim = (int32_t)word_at(impl, tensor_layout.dims);
    *sizes = (const int64_t *)((const char *)impl + tensor_layout.dims) + 1;
    return 1;
}

int
tensor_number_place(PyObject *name, Py_ssize_t dim, Py_ssize_t *place)
{
    static const char *const names[] = {"size", "stride", "storage_offset"};
    for (int i = 0; i < 3; i++) {
        if (PyUnicode_CompareWithASCIIString(name, names[i]) == 0) {
            *place = i * INLINE_DIMS + dim;
            return 0;
        }
    }
    PyErr_Format(PyExc_ValueError, "a tensor has no number '%U'", name);
    return -1;
}

static int
read_dims(PyObject *dims, int64_t *out)
{
    for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(dims); i++) {
        PyObject *dim = PyTuple_GET_ITEM(dims, i);
        out[i] = dim == Py_None ? ANY : PyLong_AsLongLong(dim);
    }
    return PyErr_Occurred() ? -1 : 0;
}

int
tensor_spec_init(TensorSpec *spec, PyObject *fields)
{
    PyObject *type, *shape, *stride;
    int weak;
    if (!PyArg_ParseTuple(fields, "OpOO(iiiii)O!O!ipppi", &type, &weak, &spec->holds, &spec->dtype,
                          &spec->device_type, &spec->device_id, &spec->code,
                          &spec->bits, &spec->lanes, &PyTuple_Type, &shape, &PyTuple_Type,
                          &stride, &spec->requires_grad, &spec->is_conj, &spec->is_neg,
                          &spec->may_be_conj, &spec->is_inference)) {
        spec->holds = spec->dtype = NULL;
        return -1;
    }
    spec->type = (Operand){Py_NewRef(type), weak ? BY_WEAKREF : BY_IDENTITY};
    Py_INCREF(spec->holds);
    Py_INCREF(spec->dtype);
    spec->ndim = (int32_t)PyTuple_GET_SIZE(shape);
    if (PyTuple_GET_SIZE(stride) != spec->ndim) {
        PyErr_SetString(PyExc_ValueError, "a shape and a stride of different lengths");
        return -1;
    }
    spec->shape = PyMem_New(int64_t, 2 * spec->ndim + 1);
    if (spec->shape == NULL) {
        PyErr_NoMemory();
        return -1;
    }
    spec->stride = spec->shape + spec->ndim;
    return read_dims(shape, spec->shape) < 0 ? -1 : read_dims(stride, spec->stride);
}

void
tensor_spec_clear(TensorSpec *spec)
{
    Py_CLEAR(spec->type.obj);
    Py_CLEAR(spec->holds);
    Py_CLEAR(spec->dtype);
    PyMem_Free(spec->shape);
    spec->shape = spec->stride = NULL;
}

int
tensor_spec_visit(TensorSpec *spec, visitproc visit, void *arg)
{
    Py_VISIT(spec->type.obj);
    Py_VISIT(spec->holds);
    Py_VISIT(spec->dtype);
    return 0;
}
