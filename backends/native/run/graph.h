/* The Python callable that runs a compiled library. */
#ifndef DYNACAP_GRAPH_H
#define DYNACAP_GRAPH_H

#include "torch_abi.h"

typedef struct graph_ Graph;

extern PyTypeObject Graph_Type;

/* Where the TensorImpl's address lies in a Python tensor, and the type of all tensors. */
extern Py_ssize_t tensor_impl_offset;
extern PyTypeObject *tensor_type;

/* Have Python run step `index` on `count` tensors and `nsizes` sizes, and take `nresults` (NULL: nobody wants it);
 * not 0 with an exception set if it raises.  Called without the GIL. */
int graph_python(Graph *graph, int index, int count, Tensor *tensors, int nsizes, int64_t *sizes,
                 int nresults, Tensor **results);

#endif
