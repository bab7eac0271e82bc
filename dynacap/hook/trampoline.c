/* The loop of dynacap/driver.py for what has happened before.
 *
 * A Path is what the driver learned of one break: the function that runs the breaking instruction,
 * and for each way in which that ends the sites at which the frames stand then. The loop follows
 * paths; whatever has none, and every exception that a waiting frame might handle, goes to the
 * driver's methods in Python.
 */
#include "trampoline.h"
#include "activation.h"
#include "code_cache.h"
#include <structmember.h>

#define FEW 32

typedef struct {
    PyObject_HEAD
    PyObject *step;     /* owned: the function; called with the list of the frame's values */
    Py_ssize_t waiting; /* how many values belong to the frames that wait */
    Py_ssize_t head;    /* the frame's values that the step does not give back: function, cells */
    PyObject *sites;    /* owned tuple: by outcome, the sites then; () for the last result */
    PyObject *rest;     /* owned tuple: the sites of the frames that wait */
    PyObject *tables;   /* owned list: by outcome, the table there; None: not asked for yet */
    PyObject *ends;     /* owned tuple of bools: by outcome, whether the frame returned */
} Path;

typedef struct {
    PyObject_HEAD
    vectorcallfunc vectorcall;
    PyObject *driver; /* owned: the driver, or a weak reference to it */
    PyObject *paths;  /* owned dict: sites -> Path */
    int weakly;
} Trampoline;

static PyTypeObject *path_type = NULL;       /* owned */
static PyTypeObject *trampoline_type = NULL; /* owned */
static PyTypeObject *suspend_type = NULL;    /* owned */
static PyObject *name_sites, *name_values, *name_plain, *name_stack, *name_finish, *name_offer,
    *name_table_at, *name_watched_at, *name_thrown, *empty;

void
trampoline_set_types(PyTypeObject *path, PyTypeObject *trampoline)
{
    Py_XSETREF(path_type, (PyTypeObject *)Py_XNewRef(path));
    Py_XSETREF(trampoline_type, (PyTypeObject *)Py_XNewRef(trampoline));
    name_sites = PyUnicode_InternFromString("sites");
    name_values = PyUnicode_InternFromString("values");
    name_plain = PyUnicode_InternFromString("plain");
    name_stack = PyUnicode_InternFromString("stack");
    name_finish = PyUnicode_InternFromString("finish");
    name_offer = PyUnicode_InternFromString("offer");
    name_table_at = PyUnicode_InternFromString("table_at");
    name_watched_at = PyUnicode_InternFromString("watched_at");
    name_thrown = PyUnicode_InternFromString("thrown");
    empty = PyTuple_New(0);
}

void
trampoline_set_suspend_type(PyTypeObject *type)
{
    Py_XSETREF(suspend_type, (PyTypeObject *)Py_XNewRef(type));
}

/* --- one round ------------------------------------------------------------------------------- */

static int
is_false(PyObject *obj, PyObject *name)
{
    PyObject *value = PyObject_GetAttr(obj, name);
    Py_XDECREF(value);
    return value == Py_False;
}

/* The path of a suspended result, owned; NULL, perhaps with an error: there is none. */
static PyObject *
find_path(Trampoline *self, PyObject *suspend)
{
    if (!is_false(suspend, name_plain) || !is_false(suspend, name_stack)) {
        return NULL;
    }
    PyObject *sites = PyObject_GetAttr(suspend, name_sites);
    PyObject *path = sites == NULL ? NULL : PyDict_GetItemWithError(self->paths, sites);
    Py_XINCREF(path);
    Py_XDECREF(sites);
    return path;
}

/* The values of a suspended result, which no longer holds them; owned. */
static PyObject *
take_values(PyObject *suspend)
{
    PyObject *values = PyObject_GetAttr(suspend, name_values);
    if (values != NULL && PyObject_SetAttr(suspend, name_values, empty) < 0) {
        Py_CLEAR(values);
    }
    return values;
}

/* Run the breaking instruction with the hook active: (outcome, values), owned. `own` is emptied by
 * the function, so that what the frame lets go of dies. */
static PyObject *
run_step(PyObject *driver, Path *path, PyObject *own)
{
    PyCodeObject *code = (PyCodeObject *)((PyFunctionObject *)path->step)->func_code;
    if (!code_is_never(code_note_find(code)) && code_mark_never(code) < 0) {
        return NULL;
    }
    PyObject *offer = PyObject_GetAttr(driver, name_offer);
    Py_ssize_t waiting = PyTuple_GET_SIZE(path->rest);
    Py_ssize_t token = offer == NULL ? -1 : activation_enter(offer, (int)waiting, 0);
    Py_XDECREF(offer);
    if (token < 0) {
        return NULL;
    }
    PyObject *result = PyObject_CallOneArg(path->step, own);
    PyObject *raised = result == NULL ? raised_take() : NULL;
    int left = activation_exit(token);
    if (raised != NULL) {
        raised_restore(raised);
    }
    else if (left < 0) {
        Py_CLEAR(result);
    }
    return result;
}

/* The table at which the frames go on after this outcome, owned. */
static PyObject *
table_at(PyObject *driver, Path *path, Py_ssize_t outcome)
{
    PyObject *table = PyList_GET_ITEM(path->tables, outcome);
    if (table != Py_None) {
        return Py_NewRef(table);
    }
    PyObject *sites = PyTuple_GET_ITEM(path->sites, outcome);
    table = PyObject_CallMethodOneArg(driver, name_table_at, sites);
    if (table != NULL) {
        PyList_SetItem(path->tables, outcome, Py_NewRef(table));
    }
    return table;
}

/* An exception is set: the frames that wait take it, or it goes on. */
static PyObject *
throw_to_waiting(PyObject *driver, Path *path, PyObject *const *kept)
{
    if (path->waiting == 0) {
        return NULL;
    }
    PyObject *raised = raised_take(), *result = NULL;
    PyObject *values = PyList_New(path->waiting);
    for (Py_ssize_t i = 0; values != NULL && i < path->waiting; i++) {
        PyList_SET_ITEM(values, i, Py_NewRef(kept[i]));
    }
    if (values != NULL) {
        result = PyObject_CallMethodObjArgs(driver, name_thrown, path->rest, values, raised, NULL);
    }
    Py_XDECREF(values);
    Py_DECREF(raised);
    return result;
}

/* Go on at the table with what waits (`kept`, borrowed) and what the step gave. */
static PyObject *
call_table(PyObject *driver, Path *path, Py_ssize_t outcome, int watched, PyObject **kept,
           PyObject *given)
{
    PyObject *few[FEW], **flat = few;
    int ended = PyTuple_GET_ITEM(path->ends, outcome) == Py_True;
    if (ended && path->waiting == 0) {
        return Py_NewRef(PyTuple_GET_ITEM(given, 0));
    }
    Py_ssize_t count = path->waiting + (ended ? 0 : path->head), more = PyTuple_GET_SIZE(given);
    PyObject *sites = PyTuple_GET_ITEM(path->sites, outcome), *result = NULL;
    PyObject *table = watched ? PyObject_CallMethodOneArg(driver, name_watched_at, sites)
                              : table_at(driver, path, outcome);
    if (table != NULL && count + more > FEW) {
        flat = PyMem_New(PyObject *, count + more);
    }
    if (table != NULL && flat != NULL) {
        memcpy(flat, kept, (size_t)count * sizeof(PyObject *));
        for (Py_ssize_t i = 0; i < more; i++) {
            flat[count + i] = PyTuple_GET_ITEM(given, i);
        }
        result = PyObject_Vectorcall(table, flat, (size_t)(count + more), NULL);
    }
    else if (table != NULL) {
        PyErr_NoMemory();
    }
    if (flat != few) {
        PyMem_Free(flat);
    }
    Py_XDECREF(table);
    return result;
}

/* Keep what waits and the head in `kept` (owned); the rest as a list, owned, or NULL. */
static PyObject *
split_values(Path *path, PyObject *values, PyObject **kept)
{
    Py_ssize_t first = path->waiting + path->head, count = PyTuple_GET_SIZE(values);
    for (Py_ssize_t i = 0; i < first; i++) {
        kept[i] = Py_NewRef(PyTuple_GET_ITEM(values, i));
    }
    /* The step takes the cells, too; the function it has. */
    PyObject *own = PyList_New(count - path->waiting - 1);
    for (Py_ssize_t i = path->waiting + 1; own != NULL && i < count; i++) {
        PyList_SET_ITEM(own, i - path->waiting - 1, Py_NewRef(PyTuple_GET_ITEM(values, i)));
    }
    return own;
}

/* Release what frames hold (owned, taken over) as a frame that ends does. */
static void
let_go(PyObject *values)
{
    if (LOCALS_DIE_IN_ORDER && Py_REFCNT(values) == 1) {
        for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(values); i++) {
            PyObject *value = PyTuple_GET_ITEM(values, i);
            PyTuple_SET_ITEM(values, i, NULL);
            Py_XDECREF(value);
        }
    }
    Py_DECREF(values);
}

static PyObject *
go_on(PyObject *driver, Path *path, PyObject **kept, PyObject *own)
{
    Py_ssize_t outcome;
    PyObject *result = NULL, *state, *given;
    PyThreadState *tstate = PyThreadState_Get();
    int watched = tstate->c_tracefunc != NULL;
    PyObject *pair = run_step(driver, path, own);
    watched = !watched && tstate->c_tracefunc != NULL; /* since this very instruction */
    if (pair == NULL) {
        return throw_to_waiting(driver, path, kept);
    }
    if (PyArg_ParseTuple(pair, "nO", &outcome, &state)
        && (given = PySequence_Tuple(state)) != NULL) {
        Py_CLEAR(pair);
        result = call_table(driver, path, outcome, watched, kept, given);
        let_go(given);
    }
    Py_XDECREF(pair);
    return result;
}

/* One round from a suspended result whose path this is. */
static PyObject *
follow(PyObject *driver, Path *path, PyObject *suspend)
{
    PyObject *few[FEW], **kept = few, *result = NULL, *own = NULL;
    Py_ssize_t count = path->waiting + path->head;
    if (count > FEW) {
        kept = PyMem_Calloc((size_t)count, sizeof(PyObject *));
    }
    PyObject *values = kept == NULL ? PyErr_NoMemory() : take_values(suspend);
    if (values != NULL) {
        own = split_values(path, values, kept);
        Py_DECREF(values);
        result = own == NULL ? NULL : go_on(driver, path, kept, own);
        Py_XDECREF(own);
        for (Py_ssize_t i = 0; i < count; i++) {
            Py_DECREF(kept[i]);
        }
    }
    if (kept != few) {
        PyMem_Free(kept);
    }
    return result;
}

/* Whether the path's function is one like the frame's. */
static int
fits(Path *path, PyObject *suspend)
{
    PyObject *values = PyObject_GetAttr(suspend, name_values);
    int fit = 0;
    if (values != NULL && PyTuple_CheckExact(values)
        && PyTuple_GET_SIZE(values) >= path->waiting + path->head) {
        PyObject *function = PyTuple_GET_ITEM(values, path->waiting);
        fit = PyFunction_Check(function)
              && ((PyFunctionObject *)function)->func_globals
                     == ((PyFunctionObject *)path->step)->func_globals;
    }
    Py_XDECREF(values);
    return fit;
}

/* --- the loop -------------------------------------------------------------------------------- */

/* The driver, owned. */
static PyObject *
driver_of(Trampoline *self)
{
    PyObject *driver = self->weakly ? PyWeakref_GET_OBJECT(self->driver) : self->driver;
    if (driver == Py_None) {
        PyErr_SetString(PyExc_ReferenceError, "the driver runs what it answered");
        return NULL;
    }
    return Py_NewRef(driver);
}

/* Whether the driver leaves the rest to the caller: it is at no sites, where a path could lead. */
static int
is_for_caller(PyObject *result)
{
    if (Py_TYPE(result) != suspend_type) {
        return 0;
    }
    PyObject *sites = PyObject_GetAttr(result, name_sites);
    if (sites == NULL) {
        PyErr_Clear();
    }
    Py_XDECREF(sites);
    return sites == NULL || sites == Py_None;
}

static PyObject *
trampoline_run(Trampoline *self, PyObject *suspend)
{
    PyObject *driver = driver_of(self);
    PyObject *result = Py_NewRef(suspend);
    while (driver != NULL && result != NULL && Py_TYPE(result) == suspend_type) {
        PyObject *path = find_path(self, result), *next;
        int known = path != NULL && fits((Path *)path, result);
        if (!known && PyErr_Occurred()) {
            next = NULL;
        }
        else {
            next = known ? follow(driver, (Path *)path, result)
                         : PyObject_CallMethodOneArg(driver, name_finish, result);
        }
        Py_XDECREF(path);
        Py_SETREF(result, next);
        if (!known && next != NULL && is_for_caller(next)) {
            break;
        }
    }
    if (driver == NULL) {
        Py_CLEAR(result);
    }
    Py_XDECREF(driver);
    return result;
}

PyObject *
finish_suspended(PyObject *finish, PyObject *suspend)
{
    return Py_TYPE(finish) == trampoline_type ? trampoline_run((Trampoline *)finish, suspend)
                                              : PyObject_CallOneArg(finish, suspend);
}

static PyObject *
trampoline_call(PyObject *op, PyObject *const *args, size_t nargsf, PyObject *kwnames)
{
    if (PyVectorcall_NARGS(nargsf) != 1 || kwnames != NULL) {
        PyErr_SetString(PyExc_TypeError, "expected one suspended result");
        return NULL;
    }
    return trampoline_run((Trampoline *)op, args[0]);
}

/* --- being objects --------------------------------------------------------------------------- */

static PyObject *
path_new(PyTypeObject *type, PyObject *args, PyObject *kwargs)
{
    static char *names[] = {"step", "waiting", "head", "rest", "sites", "ends", NULL};
    PyObject *step, *rest, *sites, *ends;
    Py_ssize_t waiting, head;
    if (!PyArg_ParseTupleAndKeywords(args, kwargs, "O!nnO!O!O!:Path", names, &PyFunction_Type,
                                     &step, &waiting, &head, &PyTuple_Type, &rest, &PyTuple_Type,
                                     &sites, &PyTuple_Type, &ends)) {
        return NULL;
    }
    Path *self = (Path *)type->tp_alloc(type, 0);
    if (self == NULL) {
        return NULL;
    }
    self->step = Py_NewRef(step);
    self->waiting = waiting;
    self->head = head;
    self->rest = Py_NewRef(rest);
    self->sites = Py_NewRef(sites);
    self->ends = Py_NewRef(ends);
    self->tables = PyList_New(PyTuple_GET_SIZE(sites));
    for (Py_ssize_t i = 0; self->tables != NULL && i < PyTuple_GET_SIZE(sites); i++) {
        PyList_SET_ITEM(self->tables, i, Py_NewRef(Py_None));
    }
    if (self->tables == NULL) {
        Py_CLEAR(self);
    }
    return (PyObject *)self;
}

static int
path_traverse(PyObject *op, visitproc visit, void *arg)
{
    Path *self = (Path *)op;
    Py_VISIT(Py_TYPE(op));
    Py_VISIT(self->step);
    Py_VISIT(self->tables);
    return 0;
}

/* No tp_clear: rounds count on all of it, and the list of tables can break a cycle. */
static void
path_dealloc(PyObject *op)
{
    Path *self = (Path *)op;
    PyTypeObject *type = Py_TYPE(op);
    PyObject_GC_UnTrack(op);
    Py_XDECREF(self->step);
    Py_XDECREF(self->rest);
    Py_XDECREF(self->sites);
    Py_XDECREF(self->ends);
    Py_XDECREF(self->tables);
    type->tp_free(op);
    Py_DECREF(type);
}

static PyType_Slot path_slots[] = {
    {Py_tp_doc, "What one break did, and where the frames went on."},
    {Py_tp_new, path_new},
    {Py_tp_traverse, path_traverse},
    {Py_tp_dealloc, path_dealloc},
    {0, NULL},
};

PyType_Spec path_spec = {
    .name = "dynacap.hook._chook.Path",
    .basicsize = sizeof(Path),
    .flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_HAVE_GC,
    .slots = path_slots,
};

static PyObject *
trampoline_new(PyTypeObject *type, PyObject *args, PyObject *kwargs)
{
    static char *names[] = {"driver", "paths", "weakly", NULL};
    PyObject *driver, *paths;
    int weakly = 0;
    if (!PyArg_ParseTupleAndKeywords(args, kwargs, "OO!|p:Trampoline", names, &driver,
                                     &PyDict_Type, &paths, &weakly)) {
        return NULL;
    }
    Trampoline *self = (Trampoline *)type->tp_alloc(type, 0);
    if (self == NULL) {
        return NULL;
    }
    self->vectorcall = trampoline_call;
    self->weakly = weakly;
    self->driver = weakly ? PyWeakref_NewRef(driver, NULL) : Py_NewRef(driver);
    self->paths = Py_NewRef(paths);
    if (self->driver == NULL) {
        Py_CLEAR(self);
    }
    return (PyObject *)self;
}

static int
trampoline_traverse(PyObject *op, visitproc visit, void *arg)
{
    Trampoline *self = (Trampoline *)op;
    Py_VISIT(Py_TYPE(op));
    Py_VISIT(self->driver);
    Py_VISIT(self->paths);
    return 0;
}

/* No tp_clear: the driver, and the compiled function that has this, can break a cycle. */
static void
trampoline_dealloc(PyObject *op)
{
    Trampoline *self = (Trampoline *)op;
    PyTypeObject *type = Py_TYPE(op);
    PyObject_GC_UnTrack(op);
    Py_XDECREF(self->driver);
    Py_XDECREF(self->paths);
    type->tp_free(op);
    Py_DECREF(type);
}

static PyMemberDef trampoline_members[] = {
    {"__vectorcalloffset__", T_PYSSIZET, offsetof(Trampoline, vectorcall), READONLY, NULL},
    {NULL},
};

static PyType_Slot trampoline_slots[] = {
    {Py_tp_doc, "Called with a suspended result: goes on until the outermost frame returns."},
    {Py_tp_new, trampoline_new},
    {Py_tp_call, PyVectorcall_Call},
    {Py_tp_traverse, trampoline_traverse},
    {Py_tp_dealloc, trampoline_dealloc},
    {Py_tp_members, trampoline_members},
    {0, NULL},
};

PyType_Spec trampoline_spec = {
    .name = "dynacap.hook._chook.Trampoline",
    .basicsize = sizeof(Trampoline),
    .flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_HAVE_GC | Py_TPFLAGS_HAVE_VECTORCALL,
    .slots = trampoline_slots,
};
