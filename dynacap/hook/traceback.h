/* Tracebacks that show the user's frames, each once, and none of ours. */
#ifndef DYNACAP_HOOK_TRACEBACK_H
#define DYNACAP_HOOK_TRACEBACK_H

#include "cpython.h"

/* Drop the hidden frames from the traceback of the exception that is set, unless it was raised in
 * one of them (then it tells of a fault of ours). Whether the traceback now begins with a frame
 * that continues `code` (borrowed), so that the user's frame is there already. */
int traceback_tidy(PyCodeObject *code);

/* The same, and add an entry for the function (borrowed) where it is missing. */
void traceback_show_function(PyFunctionObject *function);

#endif
