/* The `__call__` of compiled modules: hands the call on, for the module that they stand for. */
#ifndef DYNACAP_HOOK_MODULE_CALL_H
#define DYNACAP_HOOK_MODULE_CALL_H

#include "cpython.h"

extern PyType_Spec module_call_spec;

#endif
