/* Running the conditions on sizes: a cell for each instruction, computed in order. */
#include "size_program.h"

#include <math.h>

#include "tensor_check.h"

enum { MAX_CELLS = 256 };

/* Up to here every whole number is a double. */
#define EXACT ((int64_t)1 << 53)

typedef enum {
    OP_INT, OP_CONSTANT, OP_NUMBER, OP_REAL, OP_SIZE, OP_STRIDE, OP_OFFSET,
    OP_ADD, OP_SUB, OP_MUL, OP_FLOORDIV, OP_MOD, OP_MIN, OP_MAX,
    OP_FLOAT, OP_FADD, OP_FSUB, OP_FMUL, OP_FDIV, OP_FLOOR, OP_CEIL, OP_TRUNC,
    OP_EQ, OP_NE, OP_LT, OP_LE, OP_FEQ, OP_FNE, OP_FLT, OP_FLE,
    OP_AND, OP_OR, OP_NOT, OP_REQUIRE, OP_COUNT,
} Op;

static const char *const op_names[OP_COUNT] = {
    "int", "constant", "number", "real", "size", "stride", "offset",
    "add", "sub", "mul", "floordiv", "mod", "min", "max",
    "float", "fadd", "fsub", "fmul", "fdiv", "floor", "ceil", "trunc",
    "eq", "ne", "lt", "le", "feq", "fne", "flt", "fle",
    "and", "or", "not", "require",
};

typedef union {
    int64_t i;
    double f;
} Cell;

static int
find_op(const char *name)
{
    for (int op = 0; op < OP_COUNT; op++) {
        if (strcmp(op_names[op], name) == 0) {
            return op;
        }
    }
    PyErr_Format(PyExc_ValueError, "sizes are not computed with '%s'", name);
    return -1;
}

int
size_program_init(SizeProgram *program, PyObject *code)
{
    Py_ssize_t count = PyTuple_GET_SIZE(code);
    if (count == 0) {
        return 0;
    }
    if (count > MAX_CELLS) {
        PyErr_SetString(PyExc_ValueError, "too many instructions");
        return -1;
    }
    program->code = PyMem_Calloc((size_t)count, sizeof(Instruction));
    if (program->code == NULL) {
        PyErr_NoMemory();
        return -1;
    }
    for (Py_ssize_t i = 0; i < count; i++) {
        Instruction *made = &program->code[i];
        const char *name;
        long long number;
        if (!PyArg_ParseTuple(PyTuple_GET_ITEM(code, i), "siiL", &name, &made->left, &made->right,
                              &number)) {
            return -1;
        }
        int op = find_op(name);
        if (op < 0) {
            return -1;
        }
        made->op = (uint8_t)op;
        made->number = number;
    }
    program->count = count;
    return 0;
}

void
size_program_clear(SizeProgram *program)
{
    PyMem_Free(program->code);
    *program = (SizeProgram){NULL, 0};
}

/* The rest answers 1, or 0 where the result is in doubt. */

static int
read_tensor(const Instruction *ins, PyObject *value, int64_t *out)
{
    const int64_t *sizes;
    int32_t ndim;
    if (tensor_sizes(value, &sizes, &ndim) != 1 || ins->right >= ndim) {
        return 0;
    }
    *out = ins->op == OP_SIZE ? sizes[ins->right] : sizes[INLINE_DIMS + ins->right];
    return 1;
}

static int
read_offset(PyObject *value, int64_t *out)
{
    const int64_t *sizes;
    int32_t ndim;
    if (tensor_sizes(value, &sizes, &ndim) != 1) {
        return 0;
    }
    *out = sizes[2 * INLINE_DIMS]; /* it lies behind the strides */
    return 1;
}

static int
read_number(PyObject *value, int64_t *out)
{
    int overflow = 1;
    if (PyLong_CheckExact(value)) {
        *out = PyLong_AsLongLongAndOverflow(value, &overflow);
    }
    return overflow == 0;
}

static int
read_real(PyObject *value, double *out)
{
    if (!PyFloat_CheckExact(value)) {
        return 0;
    }
    *out = PyFloat_AS_DOUBLE(value);
    return 1;
}

static int
read_value(const Instruction *ins, PyObject *const *values, Cell *out)
{
    PyObject *value = values[ins->left];
    switch (ins->op) {
    case OP_NUMBER:
        return read_number(value, &out->i);
    case OP_REAL:
        return read_real(value, &out->f);
    case OP_OFFSET:
        return read_offset(value, &out->i);
    default:
        return read_tensor(ins, value, &out->i);
    }
}

/* Rounded downwards, as Python divides. */
static int
divide(int op, int64_t left, int64_t right, int64_t *out)
{
    if (right == 0 || (left == INT64_MIN && right == -1)) {
        return 0;
    }
    int64_t quotient = left / right, rest = left % right;
    int below = rest != 0 && (rest < 0) != (right < 0);
    *out = op == OP_MOD ? rest + (below ? right : 0) : quotient - below;
    return 1;
}

static int
round_real(int op, double real, int64_t *out)
{
    double rounded = op == OP_FLOOR ? floor(real) : op == OP_CEIL ? ceil(real) : trunc(real);
    if (!(fabs(rounded) <= (double)EXACT)) {
        return 0;
    }
    *out = (int64_t)rounded;
    return 1;
}

static int
compute(const Instruction *ins, const Cell *cells, Cell *out)
{
    const Cell left = cells[ins->left], right = cells[ins->right];
    switch (ins->op) {
    case OP_ADD:
        return !__builtin_add_overflow(left.i, right.i, &out->i);
    case OP_SUB:
        return !__builtin_sub_overflow(left.i, right.i, &out->i);
    case OP_MUL:
        return !__builtin_mul_overflow(left.i, right.i, &out->i);
    case OP_FLOORDIV:
    case OP_MOD:
        return divide(ins->op, left.i, right.i, &out->i);
    case OP_MIN:
        return out->i = Py_MIN(left.i, right.i), 1;
    case OP_MAX:
        return out->i = Py_MAX(left.i, right.i), 1;
    case OP_FLOAT:
        return out->f = (double)left.i, -EXACT <= left.i && left.i <= EXACT;
    case OP_FADD:
        return out->f = left.f + right.f, 1;
    case OP_FSUB:
        return out->f = left.f - right.f, 1;
    case OP_FMUL:
        return out->f = left.f * right.f, 1;
    case OP_FDIV:
        return right.f != 0 && (out->f = left.f / right.f, 1);
    default:
        return round_real(ins->op, left.f, &out->i);
    }
}

static int64_t
decide(const Instruction *ins, const Cell *cells)
{
    const Cell left = cells[ins->left], right = cells[ins->right];
    switch (ins->op) {
    case OP_EQ:
        return left.i == right.i;
    case OP_NE:
        return left.i != right.i;
    case OP_LT:
        return left.i < right.i;
    case OP_LE:
        return left.i <= right.i;
    case OP_FEQ:
        return left.f == right.f;
    case OP_FNE:
        return left.f != right.f;
    case OP_FLT:
        return left.f < right.f;
    case OP_FLE:
        return left.f <= right.f;
    case OP_AND:
        return left.i && right.i;
    case OP_OR:
        return left.i || right.i;
    default:
        return !left.i;
    }
}

int
size_program_run(const SizeProgram *program, PyObject *const *values)
{
    Cell cells[MAX_CELLS];
    for (Py_ssize_t at = 0; at < program->count; at++) {
        const Instruction *ins = &program->code[at];
        int sure = 1;
        if (ins->op <= OP_CONSTANT) {
            cells[at].i = ins->number;
        }
        else if (ins->op <= OP_OFFSET) {
            sure = read_value(ins, values, &cells[at]);
        }
        else if (ins->op < OP_EQ) {
            sure = compute(ins, cells, &cells[at]);
        }
        else if (ins->op != OP_REQUIRE) {
            cells[at].i = decide(ins, cells);
        }
        else if (!cells[ins->left].i) {
            return 0;
        }
        if (!sure) {
            return SIZES_DOUBT;
        }
    }
    return 1;
}
