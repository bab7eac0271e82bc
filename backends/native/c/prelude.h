#include <stdint.h>

typedef struct tensor_ *Tensor; /* torch's AtenTensorHandle */
typedef uint64_t Value;         /* torch's StableIValue: an argument for its dispatcher */
typedef struct graph_ Graph;    /* the callable that runs this library */

int omp_get_max_threads(void);

/* For a function that only calls others, once each: -O3 takes compilers twice as long for all of a
   graph, -O0 costs up to 3 % of a call. */
#define LIGHTLY_OPTIMIZED __attribute__((optimize("Og")))

/* What the loader fills in before the first call. */
struct import {
    const char *name;
    void *where;
};

/* Set when a number was met that Python's integers hold and int64_t does not. */
static _Thread_local int dynacap_large;

static inline int64_t
dynacap_add(int64_t a, int64_t b)
{
    int64_t sum;
    dynacap_large |= __builtin_add_overflow(a, b, &sum);
    return sum;
}

static inline int64_t
dynacap_mul(int64_t a, int64_t b)
{
    int64_t product;
    dynacap_large |= __builtin_mul_overflow(a, b, &product);
    return product;
}

/* Sizes divide as Python's integers do, which raise at 0. */
static inline int64_t
dynacap_floor_div(int64_t a, int64_t b)
{
    if (b == 0 || (b == -1 && a == INT64_MIN)) {
        dynacap_large = 1;
        return 0;
    }
    int64_t quotient = a / b;
    return quotient - (quotient * b != a && (a < 0) != (b < 0));
}

static inline int64_t
dynacap_floor_mod(int64_t a, int64_t b)
{
    return a - dynacap_floor_div(a, b) * b;
}

static inline int64_t
dynacap_max(int64_t a, int64_t b)
{
    return a > b ? a : b;
}

static inline int64_t
dynacap_min(int64_t a, int64_t b)
{
    return a < b ? a : b;
}

static inline double
dynacap_float(int64_t bits)
{
    union { int64_t bits; double number; } both = {bits};
    return both.number;
}

/* Whether torch takes a number everywhere: it refuses some that a float does not hold. */
static inline int
dynacap_is_plain(double number)
{
    return number >= -0x1.fffffep127 && number <= 0x1.fffffep127;
}

/* Whether so many numbers are neither NaN nor infinite. */
static inline int
dynacap_finite_f32(const void *at, int64_t count)
{
    const uint32_t *bits = at;
    uint32_t others = 0;
    for (int64_t i = 0; i < count; i++) {
        others |= (bits[i] & 0x7f800000) == 0x7f800000;
    }
    return !others;
}

static inline int
dynacap_finite_f64(const void *at, int64_t count)
{
    const uint64_t *bits = at, infinite = UINT64_C(0x7ff) << 52;
    uint64_t others = 0;
    for (int64_t i = 0; i < count; i++) {
        others |= (bits[i] & infinite) == infinite;
    }
    return !others;
}

static inline Value
dynacap_double(double number)
{
    union { double number; Value value; } both = {number};
    return both.value;
}
