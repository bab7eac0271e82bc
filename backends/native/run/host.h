/* What a compiled library calls besides libtorch.  These do not need the GIL unless they say so. */
#ifndef DYNACAP_HOST_H
#define DYNACAP_HOST_H

#include "torch_abi.h"

/* A function that libraries import by this name; NULL if there is none. */
void *host_symbol(const char *name);

#endif
