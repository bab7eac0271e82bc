#if defined(__linux__) && !defined(_GNU_SOURCE)
#define _GNU_SOURCE /* pthread_getattr_np */
#endif
#include "activation.h"
#include "eval_hook.h"

#if defined(__linux__)
#include <pthread.h>
#endif

#define STACK_RESERVE (256 * 1024)

_Thread_local HookThread hook_thread = {.base = NO_BASE};

/* All under the GIL. */
static Py_ssize_t threads_active = 0;
static Py_ssize_t threads_aside = 0;

static void
update_evaluator(void)
{
    evaluator_want(threads_active > 0 && threads_aside == 0);
}

/* `callback` (owned, taken over; NULL: none) becomes the thread's; the old one, owned. */
static PyObject *
swap_callback(PyObject *callback)
{
    PyObject *old = hook_thread.callback;
    hook_thread.callback = callback;
    if ((old == NULL) != (callback == NULL)) {
        threads_active += callback == NULL ? -1 : 1;
        update_evaluator();
    }
    return old;
}

static void
release_room(void)
{
    HookThread *thread = &hook_thread;
    if (thread->saved != thread->at_hand) {
        PyMem_Free(thread->saved);
    }
    thread->saved = thread->at_hand;
    thread->capacity = SAVED_AT_HAND;
}

static int
make_room(void)
{
    HookThread *thread = &hook_thread;
    if (thread->n_saved < thread->capacity) {
        return 0;
    }
    if (thread->capacity == 0) {
        thread->saved = thread->at_hand;
        thread->capacity = SAVED_AT_HAND;
        return 0;
    }
    Py_ssize_t capacity = 2 * thread->capacity;
    Saved *saved = PyMem_Malloc(capacity * sizeof(Saved));
    if (saved == NULL) {
        PyErr_NoMemory();
        return -1;
    }
    memcpy(saved, thread->saved, thread->n_saved * sizeof(Saved));
    release_room();
    thread->saved = saved;
    thread->capacity = capacity;
    return 0;
}

Py_ssize_t
activation_enter(PyObject *callback, int frames, int of_call)
{
    HookThread *thread = &hook_thread;
    if (make_room() < 0) {
        return -1;
    }
    Saved *saved = &thread->saved[thread->n_saved];
    saved->base = thread->base;
    /* User code goes on at the depth at which it would be without us. */
    PyThreadState *tstate = PyThreadState_Get();
    int *left = recursion_left(tstate);
    saved->lent = -frames;
    if (thread->base != NO_BASE) {
        saved->lent += thread->base + recursion_limit(tstate) - of_call - *left;
        thread->base = NO_BASE;
    }
    if (frames > 0 && *left + saved->lent < 0) {
        saved->lent = -*left; /* below 0 the interpreter takes it for an overflow that goes on */
    }
    *left += saved->lent;
    saved->callback = swap_callback(Py_XNewRef(callback));
    return thread->n_saved++;
}

/* Undo the latest enter(). */
static void
leave_one(void)
{
    HookThread *thread = &hook_thread;
    Saved saved = thread->saved[--thread->n_saved];
    if (thread->n_saved == 0) {
        release_room(); /* a thread that ends keeps nothing */
    }
    thread->base = saved.base;
    *recursion_left(PyThreadState_Get()) -= saved.lent;
    PyObject *old = swap_callback(saved.callback);
    Py_XDECREF(old);
}

int
activation_exit(Py_ssize_t token)
{
    if (token < 0 || token >= hook_thread.n_saved) {
        PyErr_Format(PyExc_RuntimeError,
                     "exit(%zd): this thread has %zd unfinished enter(); each token serves once, "
                     "in the thread that it was made in",
                     token, hook_thread.n_saved);
        return -1;
    }
    while (hook_thread.n_saved > token) {
        leave_one();
    }
    return 0;
}

void
activation_pause(PyThreadState *tstate, Paused *paused)
{
    HookThread *thread = &hook_thread;
    int *left = recursion_left(tstate);
    paused->base = thread->base;
    paused->n_saved = thread->n_saved;
    thread->base = *left - recursion_limit(tstate);
    *left += RECURSION_CREDIT;
    thread->depth++;
    paused->callback = thread->callback == NULL ? NULL : swap_callback(NULL);
}

void
activation_resume(PyThreadState *tstate, Paused *paused)
{
    HookThread *thread = &hook_thread;
    while (thread->n_saved > paused->n_saved) {
        leave_one(); /* enter() without exit(), by an error in between */
    }
    *recursion_left(tstate) -= RECURSION_CREDIT;
    thread->base = paused->base;
    thread->depth--;
    if (paused->callback != NULL || thread->callback != NULL) {
        PyObject *old = swap_callback(paused->callback);
        Py_XDECREF(old);
    }
}

int
activation_frames_left(void)
{
    PyThreadState *tstate = PyThreadState_Get();
    int base = hook_thread.base;
    int left = base == NO_BASE ? *recursion_left(tstate) : base + recursion_limit(tstate);
    return left - FEW_FRAMES;
}

void
activation_step_aside(void)
{
    hook_thread.aside++;
    threads_aside++;
    update_evaluator();
}

void
activation_step_back(void)
{
    hook_thread.aside--;
    threads_aside--;
    update_evaluator();
}

void
activation_after_fork(void)
{
    threads_active = hook_thread.callback != NULL;
    threads_aside = hook_thread.aside;
    update_evaluator();
}

int
c_stack_is_low(void)
{
#if defined(__linux__) && !C_STACK_IS_GUARDED
    static _Thread_local char *lowest = NULL;
    char here;
    if (lowest == NULL) {
        pthread_attr_t attributes;
        void *start = NULL;
        size_t size = 0;
        if (pthread_getattr_np(pthread_self(), &attributes) != 0) {
            return 0;
        }
        pthread_attr_getstack(&attributes, &start, &size);
        pthread_attr_destroy(&attributes);
        lowest = start;
    }
    return &here - lowest < STACK_RESERVE;
#else
    return 0;
#endif
}
