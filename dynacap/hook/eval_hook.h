/* The frame evaluator that CPython calls (PEP 523) while the hook is active in some thread. */
#ifndef DYNACAP_HOOK_EVAL_HOOK_H
#define DYNACAP_HOOK_EVAL_HOOK_H

#include "cpython.h"

/* Install the evaluator, or take it away again; neither touches one that others put on top. */
void evaluator_want(int wanted);

/* Whether CPython calls ours at the moment (not through another one). */
int evaluator_is_installed(void);

/* The answer of a callback which marks the code "never"; borrowed. */
extern PyObject *hook_never;

/* Called as reporter(exception, function) when a callback fails (borrowed; NULL: none). What it
 * raises goes on to the user, otherwise the frame runs as plain Python. */
void hook_set_reporter(PyObject *reporter);

#endif
