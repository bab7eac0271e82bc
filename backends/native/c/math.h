// Scalar functions that the compiler turns into vector code: no branches, no tables, no calls.
// Blank lines separate the pieces; the prelude takes those that a kernel uses, and SFX and TYPE
// stand for each type in turn.  Errors are measured against float64 by tests/backends/native.

typedef uint16_t bf16;

// The low half of a float is what bfloat16 lacks.
static inline float from_bf16(bf16 x)
{
    return bits_f32((int32_t)x << 16);
}

// Rounds to the nearest, ties to even; a NaN stays one.
static inline bf16 to_bf16(float x)
{
    uint32_t bits = (uint32_t)f32_bits(x);
    uint32_t rounded = (bits + 0x7fff + ((bits >> 16) & 1)) >> 16;
    return (bf16)(x != x ? 0x7fc0 : rounded);
}

static inline int32_t f32_bits(float x)
{
    int32_t bits;
    __builtin_memcpy(&bits, &x, sizeof bits);
    return bits;
}

static inline float bits_f32(int32_t bits)
{
    float x;
    __builtin_memcpy(&x, &bits, sizeof x);
    return x;
}

static inline int64_t f64_bits(double x)
{
    int64_t bits;
    __builtin_memcpy(&bits, &x, sizeof bits);
    return bits;
}

static inline double bits_f64(int64_t bits)
{
    double x;
    __builtin_memcpy(&x, &bits, sizeof x);
    return x;
}

// The greater of two; NaN if either is.
static inline TYPE maximum_SFX(TYPE a, TYPE b)
{
    return (a > b) | (a != a) ? a : b;
}
#pragma omp declare reduction(maximum_SFX : TYPE : omp_out = maximum_SFX(omp_in, omp_out)) \
    initializer(omp_priv = omp_orig)

// The smaller of two; NaN if either is.
static inline TYPE minimum_SFX(TYPE a, TYPE b)
{
    return (a < b) | (a != a) ? a : b;
}
#pragma omp declare reduction(minimum_SFX : TYPE : omp_out = minimum_SFX(omp_in, omp_out)) \
    initializer(omp_priv = omp_orig)

static inline TYPE sign_SFX(TYPE x)
{
    return (TYPE)((x > 0) - (x < 0));
}

// 2**n * exp(r) with |r| <= ln(2) / 2, the power of two in two factors so that neither overflows.
static inline float exp_f32(float x)
{
    float c = x > 89.0f ? 89.0f : x;
    c = c < -104.0f ? -104.0f : c;
    float n = __builtin_rintf(c * 1.44269504f);
    float r = __builtin_fmaf(n, -0.693145752f, c);
    r = __builtin_fmaf(n, -1.42860677e-06f, r);
    float p = 1.9841270e-4f;
    p = __builtin_fmaf(p, r, 1.3888889e-3f);
    p = __builtin_fmaf(p, r, 8.3333333e-3f);
    p = __builtin_fmaf(p, r, 4.1666667e-2f);
    p = __builtin_fmaf(p, r, 1.6666667e-1f);
    p = __builtin_fmaf(p, r, 0.5f);
    p = __builtin_fmaf(p, r, 1.0f);
    p = __builtin_fmaf(p, r, 1.0f);
    int32_t whole = (int32_t)n, half = whole >> 1;
    return p * bits_f32((half + 127) << 23) * bits_f32((whole - half + 127) << 23);
}

static inline float sigmoid_f32(float x)
{
    return 1 / (1 + exp_f32(-x));
}

static inline TYPE rsqrt_SFX(TYPE x)
{
    return 1 / sqrt_SFX(x);
}

static inline float sqrt_f32(float x)
{
    return __builtin_sqrtf(x);
}

static inline double sqrt_f64(double x)
{
    return __builtin_sqrt(x);
}
