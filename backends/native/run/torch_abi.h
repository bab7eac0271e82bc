/* The functions of libtorch that are called, found by name when the extension is first used.
 *
 * libtorch's stable C interface (torch/csrc/inductor/aoti_torch/c/shim.h, torch/csrc/stable), and
 * one function of libtorch_python that makes a tensor's Python object.  A handle is the address of
 * a word that holds the TensorImpl, as an at::Tensor does, so that such a word makes a borrowed
 * handle of any Python tensor.
 */
#ifndef DYNACAP_TORCH_ABI_H
#define DYNACAP_TORCH_ABI_H

#include <Python.h>
#include <stdbool.h>
#include <stdint.h>

typedef struct tensor_ *Tensor;
typedef struct list_ *List;
typedef struct string_ *String;
typedef uint64_t Value;

typedef struct {
    int (*delete_tensor)(Tensor);
    int (*new_handle)(Tensor, Tensor *);
    int (*data_ptr)(Tensor, void **);
    int (*copy)(Tensor, Tensor, int32_t);
    int (*size)(Tensor, int64_t, int64_t *);
    int (*stride)(Tensor, int64_t, int64_t *);
    int (*storage_offset)(Tensor, int64_t *);
    int (*from_blob)(void *, int64_t, const int64_t *, const int64_t *, int64_t, int32_t, int32_t,
                     int32_t, Tensor *);
    int (*empty_strided)(int64_t, const int64_t *, const int64_t *, int32_t, int32_t, int32_t,
                         Tensor *);
    int (*reinterpret)(Tensor, int64_t, const int64_t *, const int64_t *, int64_t, Tensor *);
    int (*dispatch)(const char *, const char *, Value *);
    int (*new_list)(size_t, List *);
    int (*list_push)(List, Value);
    int (*list_size)(List, size_t *);
    int (*list_item)(List, size_t, Value *);
    int (*delete_list)(List);
    int (*new_string)(const char *, size_t, String *);
    int (*new_value)(Value **);
    const char *(*what)(void);
    PyObject *(*wrap)(Tensor);
    int (*get_threads)(void); /* NULL where there is none */
    void (*set_threads)(int); /* OpenMP's, NULL without it */
} TorchFunctions;

extern TorchFunctions torch;

/* Look in the libraries at these paths; -1 with an exception set if one of them lacks something. */
int torch_find(const char *libtorch_cpu, const char *libtorch_python);

/* A function of libtorch_cpu; NULL if there is none of that name. */
void *torch_symbol(const char *name);

#endif
