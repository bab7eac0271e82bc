/* Which threads the hook is active in, and with which callback. */
#ifndef DYNACAP_HOOK_ACTIVATION_H
#define DYNACAP_HOOK_ACTIVATION_H

#include "cpython.h"

/* Beyond this many nested evaluations of ours the hook steps aside, so that deep recursion neither
 * overflows the C stack (3.11 has no guard) nor meets the limit on C calls (3.12, 3.13). */
#define DEPTH_LIMIT 200

/* Frames that our own code may nest on top of the user's before the recursion limit counts. */
#define RECURSION_CREDIT 1000

/* Where no more frames than these are left, code runs as it is: there the C functions that it calls,
 * which count as well, decide what overflows. */
#define FEW_FRAMES 16

#define NO_BASE INT_MIN

typedef struct {
    PyObject *callback; /* owned; NULL: none */
    int lent;           /* what activation_enter added to the frames left */
    int base;
} Saved;

#define SAVED_AT_HAND 8

typedef struct {
    PyObject *callback; /* owned; NULL: the hook is not active in this thread */
    int depth;          /* nested evaluations and compiled calls of ours */
    int aside;          /* > 0: below a place where the hook stepped aside */
    int base;           /* minus the frames when our code took over from the user's, or NO_BASE;
                         * the limit may be another by the time the user's go on */
    const Frame *passing; /* the frame being handed to another evaluator */
    Saved *saved;       /* what each unfinished enter() replaced: at_hand, or owned memory */
    Py_ssize_t n_saved, capacity;
    Saved at_hand[SAVED_AT_HAND];
} HookThread;

__attribute__((visibility("hidden"))) extern _Thread_local HookThread hook_thread;

/* What activation_pause() took out of the thread. */
typedef struct {
    PyObject *callback; /* owned */
    int base;
    Py_ssize_t n_saved;
} Paused;

/* Make `callback` (borrowed; NULL: none) the thread's. A token for activation_exit, -1: error.
 * `of_call`: what the recursion limit gets back when whoever calls this returns to Python. */
Py_ssize_t activation_enter(PyObject *callback, int frames, int of_call);
int activation_exit(Py_ssize_t token);

/* Run our own code from here on: hook inactive, recursion limit eased. Always resumed. */
void activation_pause(PyThreadState *tstate, Paused *paused);
void activation_resume(PyThreadState *tstate, Paused *paused);

/* How many frames of the user's the recursion limit still allows, but for FEW_FRAMES. */
int activation_frames_left(void);

/* Turn the hook off, in all threads, for what runs below. */
void activation_step_aside(void);
void activation_step_back(void);

/* After fork: only this thread is left. */
void activation_after_fork(void);

/* Whether the C stack of this thread is nearly used up. */
int c_stack_is_low(void);

#endif
