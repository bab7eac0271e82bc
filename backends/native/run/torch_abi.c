/* Finding libtorch's functions in the libraries that Python has loaded already. */
#include "torch_abi.h"

#include <dlfcn.h>

TorchFunctions torch;

static void *libtorch;

static const struct {
    const char *name;
    void *where;
} wanted[] = {
    {"aoti_torch_delete_tensor_object", &torch.delete_tensor},
    {"aoti_torch_new_tensor_handle", &torch.new_handle},
    {"aoti_torch_get_data_ptr", &torch.data_ptr},
    {"aoti_torch_copy_", &torch.copy},
    {"aoti_torch_get_size", &torch.size},
    {"aoti_torch_get_stride", &torch.stride},
    {"aoti_torch_get_storage_offset", &torch.storage_offset},
    {"aoti_torch_create_tensor_from_blob", &torch.from_blob},
    {"aoti_torch_empty_strided", &torch.empty_strided},
    {"aoti_torch__reinterpret_tensor", &torch.reinterpret},
    {"aoti_torch_call_dispatcher", &torch.dispatch},
    {"torch_new_list_reserve_size", &torch.new_list},
    {"torch_list_push_back", &torch.list_push},
    {"torch_list_size", &torch.list_size},
    {"torch_list_get_item", &torch.list_item},
    {"torch_delete_list", &torch.delete_list},
    {"torch_new_string_handle", &torch.new_string},
    {"torch_new_stable_ivalue", &torch.new_value},
    {"torch_exception_get_what_without_backtrace", &torch.what},
};

static const char WRAP[] = "_Z16THPVariable_WrapRKN2at10TensorBaseE";

/* at::get_num_threads(): asked first in a thread, it has OpenMP use as many as the user said. */
static const char THREADS[] = "_ZN2at15get_num_threadsEv";

static void *
opened(const char *path)
{
    void *library = dlopen(path, RTLD_LAZY | RTLD_NOLOAD);
    if (library == NULL) {
        PyErr_Format(PyExc_ImportError, "%s is not loaded", path);
    }
    return library;
}

static int
missing(const char *name)
{
    PyErr_Format(PyExc_ImportError, "this torch has no function %s", name);
    return -1;
}

int
torch_find(const char *libtorch_cpu, const char *libtorch_python)
{
    void *python = opened(libtorch_python);
    libtorch = python == NULL ? NULL : opened(libtorch_cpu);
    if (libtorch == NULL) {
        return -1;
    }
    for (size_t i = 0; i < sizeof(wanted) / sizeof(wanted[0]); i++) {
        void *found = dlsym(libtorch, wanted[i].name);
        if (found == NULL) {
            return missing(wanted[i].name);
        }
        *(void **)wanted[i].where = found;
    }
    *(void **)&torch.get_threads = dlsym(libtorch, THREADS);
    *(void **)&torch.set_threads = dlsym(libtorch, "omp_set_num_threads");
    *(void **)&torch.wrap = dlsym(python, WRAP);
    return torch.wrap == NULL ? missing(WRAP) : 0;
}

void *
torch_symbol(const char *name)
{
    return dlsym(libtorch, name);
}
