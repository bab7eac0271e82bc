/* A checker's program: the tree of sources laid out in the order in which it is walked.
 *
 * Made by lower.py from the guards.  Each node reads one value and checks it.  The children of a
 * dict or of a class come right behind it, those first whose checks cannot change while the dict
 * or class itself does not (its *fixed* children); a walk that finds the dict as it was goes on
 * behind them, at `resume`.
 */
#ifndef DYNACAP_PROGRAM_H
#define DYNACAP_PROGRAM_H

#include "fastcheck.h"
#include "size_program.h"
#include "tensor_check.h"

typedef enum {
    STEP_LOCAL,
    STEP_CONST,
    STEP_SYS_MODULE,
    STEP_FUNCTION_GLOBALS,
    STEP_FUNCTION_BUILTINS,
    STEP_CLOSURE_CELL,
    STEP_CELL_CONTENTS,
    STEP_FUNCTION_DEFAULT,
    STEP_INSTANCE_DICT,
    STEP_DICT_ITEM,
    STEP_DICT_KEY,
    STEP_SEQ_ITEM,
    STEP_DEQUE_ITEM,
    STEP_ATTR,
    STEP_TYPE_OF,
    STEP_CLASS_ATTR,
    STEP_SUPER_ATTR,
    STEP_TENSOR_NUMBER, /* read by the key, a function of ours, where memory does not tell */
    STEP_CALL,     /* a function of ours reads it: (value,) or () */
    STEP_REMEMBER, /* not a value: the fixed children of node `index` hold */
    STEP_COUNT,
} Step;

typedef enum {
    CHECK_TYPE,
    CHECK_IDENTITY,
    CHECK_CONSTANT,
    CHECK_LENGTH,
    CHECK_KEYS,
    CHECK_HAS,
    CHECK_LACKS,
    CHECK_CLASS_LACKS,
    CHECK_TENSOR,
    CHECK_CALL,
    CHECK_COUNT,
} CheckKind;

extern const char *const step_names[STEP_COUNT];
extern const char *const check_names[CHECK_COUNT];

typedef struct {
    CheckKind kind;
    Operand operand;
    Py_ssize_t number; /* a length; the number of keys; which of the program's tensors */
    Operand *keys;
    Py_ssize_t hint;
} Check;

typedef struct {
    uint8_t step;
    uint8_t owned;       /* the register holds a reference of its own */
    uint8_t is_leaf;     /* an item of a dict with one check, which nothing else asks for */
    uint8_t has_children;
    uint8_t changes;     /* how often the argument here was found to be another object */
    int32_t base;        /* the base's register; -1 for a root */
    int32_t base_node;   /* the base's position */
    int32_t reg;         /* where the value is kept for others; -1 if nobody asks */
    int32_t resume;      /* the first node behind the fixed children; 0: there is nothing to skip */
    int32_t first, each, end; /* checks: always first..each, and each..end unless unchanged */
    Py_ssize_t index;
    Operand key;
    PyObject *name; /* owned; the name, for super */
    Py_ssize_t hint; /* of a tensor's number: its place among them */
    /* What the last walk saw.  `cached` is borrowed and is the value while the base's tag is
     * `base_tag`: a tag belongs to one state of one dict or class, which holds the value. */
    uint64_t base_tag, fixed_tag;
    PyObject *cached;
} Node;

typedef enum {
    RELATE_SAME,
    RELATE_DISTINCT,
    RELATE_APART,
    RELATE_SIZES,
    RELATE_CALL,
    RELATE_COUNT,
} RelationKind;

extern const char *const relation_names[RELATE_COUNT];

typedef struct {
    RelationKind kind;
    Py_ssize_t size;
    int32_t *regs;
    PyObject *holds; /* owned */
    SizeProgram sizes;
} Relation;

/* One question to torch about the state of the process, and its answer at capture. */
typedef struct {
    PyObject *function, *argument, *expected; /* owned; argument NULL: none */
} Question;

/* What is expected of the state of the process and of the thread. */
typedef struct {
    Question *always; /* asked on each check */
    Py_ssize_t nalways;
    Question *probed; /* asked unless the probe passes */
    Py_ssize_t nprobed;
    /* One call into torch, probe(*probe_arguments), that passes only while the answers to the
     * probed questions stay the same.  It may say no without need, so its no is looked into.
     * NULL: not made (yet), or given up. */
    PyObject *probe, *probe_arguments; /* owned */
    PyObject *make_probe;              /* owned; gives the two, or None; NULL: it was called */
    int needless;                      /* how often the probe said no where all was well */
    PyObject *tests; /* owned tuple of callables, for what no question covers */
} State;

struct Recall;

typedef struct {
    Node *nodes;
    Py_ssize_t nnodes;
    Check *checks;
    Py_ssize_t nchecks;
    Relation *relations;
    Py_ssize_t nrelations;
    TensorSpec *tensors;
    Py_ssize_t ntensors;
    State state;
    int32_t *slots;
    Py_ssize_t nslots;
    Py_ssize_t nowned, nregs; /* registers that hold references come first */
    struct Recall *recall;    /* owned; NULL: nothing is remembered */
    int patience, waiting;    /* walks between two attempts to remember; those still to come */
    Py_ssize_t recalled;      /* checks answered from memory */
} Program;

/* Fill a zeroed program from the dict that lower.py makes; clear it also after a failure. */
int program_init(Program *program, PyObject *description);
void program_clear(Program *program);
int program_visit(Program *program, visitproc visit, void *arg);

/* Walk.  1: all hold, and slots has a new reference for each slot; 0: not all hold; -1: an
 * exception that must go on (KeyboardInterrupt).  The caller keeps the program and flat alive. */
int program_run(Program *program, PyObject *const *flat, Py_ssize_t nflat, PyObject **slots);

#endif
