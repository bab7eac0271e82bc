/* Finding out where torch keeps a tensor's metadata, without torch's headers.
 *
 * Python gives samples with what is true of each of them; an offset counts as found if the words
 * there say so for every sample.  Asking torch instead is always right, and costs ten times more.
 */
#include "tensor_layout.h"

#ifdef __GLIBC__
#include <malloc.h>
#endif

TensorLayout tensor_layout;

/* No TensorImpl ends before IMPL_END; the two words behind the virtual table count references. */
enum { MAX_SAMPLES = 24, IMPL_END = 176, WORD = sizeof(uint64_t), FIRST = 2 * WORD,
       MAX_RECORD = 64 };

typedef struct {
    PyObject *tensor; /* borrowed */
    unsigned long long address, keys;
    long long offset, count; /* of its elements in the storage */
    PyObject *shape, *stride; /* borrowed tuples */
    int group;                /* the same for tensors of one dtype, device and set of keys */
} Sample;

static const void *
impl_of(const Sample *sample)
{
    return (const void *)(uintptr_t)sample->address;
}

static int
is_impl_at(const Sample *sample, Py_ssize_t offset)
{
    return word_at(sample->tensor, offset) == sample->address;
}

static int
are_keys_at(const Sample *sample, Py_ssize_t offset)
{
    return word_at(impl_of(sample), offset) == sample->keys;
}

static int
are_numbers_at(const void *impl, Py_ssize_t offset, PyObject *numbers)
{
    for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(numbers); i++) {
        long long wanted = PyLong_AsLongLong(PyTuple_GET_ITEM(numbers, i));
        if ((long long)word_at(impl, offset + i * WORD) != wanted) {
            return 0;
        }
    }
    return 1;
}

/* Number, sizes, strides, where the elements begin, how many there are. */
enum { SIZES = WORD, STRIDES = SIZES + INLINE_DIMS * WORD, OFFSET = STRIDES + INLINE_DIMS * WORD,
       COUNT = OFFSET + WORD, TAIL = COUNT + WORD };

static int
are_dims_at(const Sample *sample, Py_ssize_t offset)
{
    const void *impl = impl_of(sample);
    Py_ssize_t ndim = PyTuple_GET_SIZE(sample->shape);
    return word_at(impl, offset) == (uint64_t)ndim && ndim <= INLINE_DIMS
           && are_numbers_at(impl, offset + SIZES, sample->shape)
           && are_numbers_at(impl, offset + STRIDES, sample->stride)
           && (long long)word_at(impl, offset + OFFSET) == sample->offset
           && (long long)word_at(impl, offset + COUNT) == sample->count;
}

/* The first offset of which `holds` is true for each sample; 0: there is none. */
static Py_ssize_t
find_offset(const Sample *samples, Py_ssize_t count, Py_ssize_t first, Py_ssize_t end,
            int (*holds)(const Sample *, Py_ssize_t))
{
    for (Py_ssize_t offset = first; count > 1 && offset <= end; offset += WORD) {
        Py_ssize_t i = 0;
        while (i < count && holds(&samples[i], offset)) {
            i++;
        }
        if (i == count) {
            return offset;
        }
    }
    return 0;
}

/* Whether the tails of two samples differ wherever their groups do. */
static int
tails_tell(const Sample *samples, Py_ssize_t count, const TensorLayout *layout)
{
    for (Py_ssize_t i = 0; i < count; i++) {
        for (Py_ssize_t j = 0; j < i; j++) {
            const char *left = impl_of(&samples[i]), *right = impl_of(&samples[j]);
            int same = memcmp(left + layout->tail, right + layout->tail,
                              (size_t)(layout->tail_words * WORD)) == 0;
            if (same && samples[i].group != samples[j].group) {
                return 0;
            }
        }
    }
    return 1;
}

static void
find_metadata(TensorLayout *layout, const Sample *samples, Py_ssize_t count)
{
    layout->dims = find_offset(samples, count, FIRST, IMPL_END - TAIL - WORD, are_dims_at);
    layout->tail = layout->dims + TAIL;
    layout->tail_words = (IMPL_END - layout->tail) / WORD;
    if (layout->keys < layout->tail || layout->tail_words > TAIL_WORDS
        || !tails_tell(samples, count, layout)) {
        layout->dims = 0;
    }
}

static Py_ssize_t
readable_words(const void *block)
{
#ifdef __GLIBC__
    return Py_MIN((Py_ssize_t)(malloc_usable_size((void *)block) / WORD), MAX_RECORD);
#else
    (void)block;
    return 0; /* the record is not looked into */
#endif
}

/* The one byte of a leaf's record that turns from 1 to 0 as it ceases to require grad; 0: there is
 * no such byte, or more than one. */
static Py_ssize_t
find_flag(PyObject *leaf, const uint8_t *record, Py_ssize_t size)
{
    uint8_t before[MAX_RECORD * WORD];
    Py_ssize_t found = 0;
    memcpy(before, record, (size_t)size);
    PyObject *same = PyObject_CallMethod(leaf, "requires_grad_", "O", Py_False);
    for (Py_ssize_t i = 0; same != NULL && i < size; i++) {
        if (record[i] != before[i]) {
            if (found != 0 || before[i] != 1 || record[i] != 0) {
                found = 0;
                break;
            }
            found = i;
        }
    }
    Py_XDECREF(same);
    return found;
}

/* The only word that is NULL where autograd has nothing to do with the tensor and nowhere else. */
static Py_ssize_t
find_record(const void *const impls[3], Py_ssize_t end)
{
    Py_ssize_t found = 0;
    for (Py_ssize_t offset = FIRST; offset < end; offset += WORD) {
        if (word_at(impls[0], offset) == 0 && word_at(impls[1], offset) != 0
            && word_at(impls[2], offset) != 0) {
            if (found != 0) {
                return 0;
            }
            found = offset;
        }
    }
    return found;
}

/* From three tensors: one that autograd has nothing to do with, a leaf that requires grad, and a
 * result. */
static void
find_autograd(TensorLayout *layout, PyObject *const leaves[3])
{
    const void *impls[3], *leaf, *result;
    for (int i = 0; i < 3; i++) {
        impls[i] = (const void *)(uintptr_t)word_at(leaves[i], layout->impl);
    }
    layout->autograd = find_record(impls, layout->dims);
    if (layout->autograd == 0) {
        return;
    }
    leaf = (const void *)(uintptr_t)word_at(impls[1], layout->autograd);
    result = (const void *)(uintptr_t)word_at(impls[2], layout->autograd);
    Py_ssize_t words = Py_MIN(readable_words(leaf), readable_words(result));
    layout->flag = find_flag(leaves[1], leaf, words * WORD);
    for (Py_ssize_t i = 0; i < words; i++) {
        if (word_at(leaf, i * WORD) == 0 && word_at(result, i * WORD) != 0) {
            layout->unset |= (uint64_t)1 << i;
        }
    }
}

int
record_requires_grad(const void *record)
{
    const TensorLayout *layout = &tensor_layout;
    if (record == NULL) {
        return 0;
    }
    if (layout->flag == 0 || layout->unset == 0) {
        return -1;
    }
    if (((const char *)record)[layout->flag] != 0) {
        return 1;
    }
    for (uint64_t left = layout->unset; left != 0; left &= left - 1) {
        if (word_at(record, __builtin_ctzll(left) * WORD) != 0) {
            return -1; /* perhaps a result; torch knows */
        }
    }
    return 0;
}

static Py_ssize_t
read_samples(PyObject *given, Sample *samples, Py_ssize_t *object_end)
{
    Py_ssize_t count = Py_MIN(PyTuple_GET_SIZE(given), MAX_SAMPLES);
    *object_end = IMPL_END;
    for (Py_ssize_t i = 0; i < count; i++) {
        Sample *s = &samples[i];
        if (!PyArg_ParseTuple(PyTuple_GET_ITEM(given, i), "OKKO!O!LLi", &s->tensor, &s->address,
                              &s->keys, &PyTuple_Type, &s->shape, &PyTuple_Type, &s->stride,
                              &s->offset, &s->count, &s->group)) {
            return -1;
        }
        *object_end = Py_MIN(*object_end, Py_TYPE(s->tensor)->tp_basicsize);
    }
    return count;
}

PyObject *
find_tensor_layout(PyObject *Py_UNUSED(module), PyObject *args)
{
    PyObject *given, *leaves[3];
    unsigned long long negative, conjugate;
    Sample samples[MAX_SAMPLES];
    Py_ssize_t object_end;
    if (!PyArg_ParseTuple(args, "O!KK(OOO)", &PyTuple_Type, &given, &negative, &conjugate,
                          &leaves[0], &leaves[1], &leaves[2])) {
        return NULL;
    }
    Py_ssize_t count = read_samples(given, samples, &object_end);
    if (count < 0) {
        return NULL;
    }
    TensorLayout found = {.negative_bit = negative, .conjugate_bit = conjugate};
    tensor_layout = found;
    found.impl = find_offset(samples, count, sizeof(PyObject), object_end - WORD, is_impl_at);
    if (found.impl != 0) { /* or the addresses are not what they are said to be */
        found.keys = find_offset(samples, count, WORD, IMPL_END - WORD, are_keys_at);
    }
    if (found.keys != 0) {
        find_metadata(&found, samples, count);
    }
    if (found.dims != 0) {
        find_autograd(&found, leaves);
    }
    if (PyErr_Occurred()) {
        return NULL;
    }
    tensor_layout = found;
    return Py_BuildValue("(NNN)", PyBool_FromLong(found.impl != 0 && found.keys != 0),
                         PyBool_FromLong(found.dims != 0), PyBool_FromLong(found.flag != 0));
}
