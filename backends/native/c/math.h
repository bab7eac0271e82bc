// Scalar functions that the compiler turns into vector code: no branches, no tables, no calls.
// Blank lines separate the pieces; the prelude takes those that a kernel uses, and SFX and TYPE
// stand for each type in turn.  Errors are measured against float64 by tests/backends/native.

typedef uint16_t bf16;

typedef uint16_t f16;

// Memory from the heap, aligned as vectors are; free() takes it back.
#define scratch(size) aligned_alloc(64, (size + 63) / 64 * 64)
extern void *aligned_alloc(__SIZE_TYPE__ alignment, __SIZE_TYPE__ size);
extern void free(void *memory);

// Stands in a loop whose rounds GCC is not to put together: it would keep in memory what they add up.
#define IN_ORDER __asm__ volatile("")

// An index that lies outside is told of, and nothing is read there.
static inline int64_t within(int64_t index, int64_t size, int32_t *fault)
{
    bool inside = (uint64_t)index < (uint64_t)size;
    if (!inside) {
        *fault = 1;
    }
    return inside ? index : 0;
}

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

// By bits, since GCC makes no vector code of conversions of _Float16.
static inline float from_f16(f16 x)
{
    int32_t bits = x & 0x7fff;
    float small = (float)bits * 0x1p-24f;
    float usual = bits_f32((bits << 13) + (bits >= 0x7c00 ? 0x70000000 : 0x38000000));
    float found = bits < 0x400 ? small : usual;
    return bits_f32(f32_bits(found) | (int32_t)(x & 0x8000) << 16);
}

// Rounds to the nearest, ties to even: a sum with 0.5 rounds what has no exponent in 16 bits.
static inline f16 to_f16(float x)
{
    uint32_t bits = (uint32_t)f32_bits(x) & 0x7fffffff;
    uint32_t sign = ((uint32_t)f32_bits(x) >> 16) & 0x8000;
    uint32_t small = (uint32_t)f32_bits(bits_f32((int32_t)bits) + 0.5f) - 0x3f000000;
    uint32_t usual = (bits + 0xfff + ((bits >> 13) & 1) - 0x38000000) >> 13;
    uint32_t found = bits < 0x38800000 ? small : usual;
    found = bits >= 0x477ff000 ? 0x7c00 : found;
    found = bits > 0x7f800000 ? 0x7e00 : found;
    return (f16)(found | sign);
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

// The greater of two; NaN if either is: what processors have gives b if one is NaN.
static inline TYPE maximum_SFX(TYPE a, TYPE b)
{
    TYPE most = a > b ? a : b;
    return a != a ? a : most;
}
#pragma omp declare reduction(maximum_SFX : TYPE : omp_out = maximum_SFX(omp_in, omp_out)) \
    initializer(omp_priv = omp_orig)

// The smaller of two; NaN if either is.
static inline TYPE minimum_SFX(TYPE a, TYPE b)
{
    TYPE least = a < b ? a : b;
    return a != a ? a : least;
}
#pragma omp declare reduction(minimum_SFX : TYPE : omp_out = minimum_SFX(omp_in, omp_out)) \
    initializer(omp_priv = omp_orig)

// A number that the compiler cannot know.
static inline TYPE hidden_SFX(TYPE x)
{
    volatile TYPE kept = x;
    return kept;
}

// The same where the bound is a number: one instruction, if GCC does not know which (it compares and
// chooses else, by two, and follows what one bound says of the next into a tangle of masks).
static inline TYPE at_least_SFX(TYPE x, TYPE bound)
{
    return bound > x ? bound : x;
}

static inline TYPE at_most_SFX(TYPE x, TYPE bound)
{
    return bound < x ? bound : x;
}

static inline TYPE sign_SFX(TYPE x)
{
    return (TYPE)((x > 0) - (x < 0));
}

// Towards zero; what does not fit, or is no number, is what the processor and so eager make of it: C
// leaves it open, and the compiler then drops the conversion where it is turned back.
static inline int32_t whole32_SFX(TYPE x)
{
    return (x >= -2147483648) & (x < 2147483648) ? (int32_t)x : INT32_MIN;
}

static inline int64_t whole64_SFX(TYPE x)
{
    return (x >= -9223372036854775808.0) & (x < 9223372036854775808.0) ? (int64_t)x : INT64_MIN;
}

// r in x = r + n * ln(2), where |r| <= ln(2) / 2 and the lowest bits of t are n.
static inline float exp_rest_f32(float x, float t)
{
    float n = t - 12582912.0f;
    float r = __builtin_fmaf(n, -0.693145752f, x);
    return __builtin_fmaf(n, -1.42860677e-06f, r);
}

// (exp(r) - 1 - r) / r**2 for such an r.
static inline float exp_curve_f32(float r)
{
    float p = 1.381460577e-3f;
    p = __builtin_fmaf(p, r, 8.368715644e-3f);
    p = __builtin_fmaf(p, r, 4.166838899e-2f);
    p = __builtin_fmaf(p, r, 1.666652113e-1f);
    return __builtin_fmaf(p, r, 0.49999994f);
}

// exp(r) for such an r.
static inline float exp_near_f32(float r)
{
    return __builtin_fmaf(__builtin_fmaf(exp_curve_f32(r), r, 1.0f), r, 1.0f);
}

// exp(x) = 2**n * exp(r): n is added to the exponent, 24 more where the result is too small for
// that, and then taken off by a product.  Where x is out of bounds, this is anything, and not chosen.
static inline float exp_f32(float x)
{
    float t = __builtin_fmaf(x, 1.44269504f, 12582912.0f);
    float p = exp_near_f32(exp_rest_f32(x, t));
    float lifted = t < 12582787.0f ? t + 24.0f : t;
    float scale = t < 12582787.0f ? 5.9604644775390625e-08f : 1.0f;
    float y = bits_f32(f32_bits(p) + (f32_bits(lifted) << 23)) * scale;
    y = x < -104.0f ? 0 : y;
    return x < 88.7228393f ? y : x + __builtin_inff();
}

// The same for |x| < 87; anything for others.
static inline float small_exp_f32(float x)
{
    float t = __builtin_fmaf(x, 1.44269504f, 12582912.0f);
    float p = exp_near_f32(exp_rest_f32(x, t));
    return bits_f32(f32_bits(p) + (f32_bits(t) << 23));
}

// exp(x), but 0 where that has no exponent in 8 bits, as beside the exp(0) of a largest element.
static inline TYPE flushed_exp_SFX(TYPE x)
{
    return exp_SFX(x);
}

static inline float flushed_exp_f32(float x)
{
    float t = __builtin_fmaf(x, 1.44269504f, 12582912.0f);
    float p = exp_near_f32(exp_rest_f32(x, t));
    float y = bits_f32(f32_bits(p) + (f32_bits(t) << 23));
    y = x < -87.33654f ? 0 : y;
    return x < 88.7228393f ? y : x + __builtin_inff();
}

// The same where x is not above 0.
static inline TYPE falling_exp_SFX(TYPE x)
{
    return exp_SFX(x);
}

static inline float falling_exp_f32(float x)
{
    float t = __builtin_fmaf(x, 1.44269504f, 12582912.0f);
    float p = exp_near_f32(exp_rest_f32(x, t));
    float y = p * bits_f32((f32_bits(t) << 23) + 0x3f800000);
    return x < -87.33654f ? 0 : y;
}

// 2**n * (exp(r) - 1) + (2**n - 1), of the half of all powers of two, the largest being too large.
static inline float expm1_f32(float x)
{
    float c = x > -20.0f ? x : -20.0f;
    float t = __builtin_fmaf(c, 1.44269504f, 12582912.0f);
    float r = exp_rest_f32(c, t);
    float near = __builtin_fmaf(exp_curve_f32(r) * r, r, r);
    float half = bits_f32((f32_bits(t) << 23) + 0x3f000000);
    float y = 2 * __builtin_fmaf(half, near, half - 0.5f);
    return x < 88.7228393f ? __builtin_copysignf(y, x) : x + __builtin_inff();
}

static inline TYPE sigmoid_SFX(TYPE x)
{
    return 1 / (1 + exp_SFX(-x));
}

// log(2**e * m) with m near 1: a polynomial in m - 1 beside e * ln(2) in two parts.
static inline float log_f32(float x)
{
    float tiny = x < 1.17549435e-38f ? 23.0f : 0.0f;
    float big = tiny != 0 ? x * 8388608.0f : x;
    int32_t bits = f32_bits(big) - 0x3f3504f3;
    float e = (float)(bits >> 23) - tiny;
    float f = bits_f32((bits & 0x7fffff) + 0x3f3504f3) - 1.0f;
    float p = 6.757475436e-2f;
    p = __builtin_fmaf(p, f, -1.169430092e-1f);
    p = __builtin_fmaf(p, f, 1.189353764e-1f);
    p = __builtin_fmaf(p, f, -1.240309179e-1f);
    p = __builtin_fmaf(p, f, 1.421855241e-1f);
    p = __builtin_fmaf(p, f, -1.666809022e-1f);
    p = __builtin_fmaf(p, f, 2.000216693e-1f);
    p = __builtin_fmaf(p, f, -2.500000894e-1f);
    p = __builtin_fmaf(p, f, 3.333331048e-1f);
    float square = f * f;
    float y = __builtin_fmaf(e, -2.12194440e-4f, p * f * square);
    y = __builtin_fmaf(square, -0.5f, y);
    y = __builtin_fmaf(e, 6.93359375e-1f, f + y);
    y = x == __builtin_inff() ? x : y;
    y = x == 0 ? -__builtin_inff() : y;
    return x >= 0 ? y : __builtin_nanf("");
}

// Near zero an odd polynomial, further out 1 - 2 / (exp(2|x|) + 1).
static inline float tanh_f32(float x)
{
    float a = __builtin_fabsf(x), z = x * x;
    float p = -5.905853119e-3f;
    p = __builtin_fmaf(p, z, 2.080537006e-2f);
    p = __builtin_fmaf(p, z, -5.37866801e-2f);
    p = __builtin_fmaf(p, z, 1.333195865e-1f);
    p = __builtin_fmaf(p, z, -3.333329856e-1f);
    float near = __builtin_fmaf(p * z, a, a);
    float far = 1 - 2 / (small_exp_f32(2 * (a > 10 ? 10 : a)) + 1);
    return __builtin_copysignf(a < 0.6f ? near : x != x ? x : far, x);
}

// Up to 1 an odd polynomial, further out 1 - exp(-p) with p a polynomial too.
static inline float erf_f32(float x)
{
    float a = __builtin_fabsf(x), z = x * x;
    float near = 7.853854913e-5f;
    near = __builtin_fmaf(near, z, -8.010191377e-4f);
    near = __builtin_fmaf(near, z, 5.188327283e-3f);
    near = __builtin_fmaf(near, z, -2.6853811e-2f);
    near = __builtin_fmaf(near, z, 1.128358543e-1f);
    near = __builtin_fmaf(near, z, -3.761262596e-1f);
    near = __builtin_fmaf(near, z, 1.28379107e-1f);
    near = __builtin_fmaf(near, a, a);
    float t = a > 4.0f ? 4.0f : a;
    float p = -1.924270327e-4f;
    p = __builtin_fmaf(p, t, 3.008546075e-3f);
    p = __builtin_fmaf(p, t, -2.208767459e-2f);
    p = __builtin_fmaf(p, t, 1.036403924e-1f);
    p = __builtin_fmaf(p, t, 6.375169158e-1f);
    p = __builtin_fmaf(p, t, 1.127475023f);
    p = __builtin_fmaf(p, t, 2.447042789e-4f);
    float far = 1 - small_exp_f32(-p);
    return x != x ? x : __builtin_copysignf(a <= 1 ? near : far, x);
}

// What a divisor is multiplied by, so that its reciprocal is no infinity.
static inline float lift_f32(float d)
{
    return __builtin_fabsf(d) < 0x1p-100f ? 0x1p64f : 1.0f;
}

// x / d where r = 1 / d is known: the quotient's error, which is exact, corrects it.
static inline float quotient_f32(float x, float d, float r)
{
    float q = x * r;
    float rest = __builtin_fmaf(-q, d, x);
    float better = __builtin_fmaf(rest, r, q);
    return (__builtin_fabsf(rest) < __builtin_inff()) & (rest != 0) ? better : q;
}

static inline TYPE sqrt_SFX(TYPE x)
{
    return __builtin_sqrt(x);
}

static inline float sqrt_f32(float x)
{
    return __builtin_sqrtf(x);
}

static inline TYPE rsqrt_SFX(TYPE x)
{
    return 1 / sqrt_SFX(x);
}

static inline float fmod_f32(float a, float b)
{
    return __builtin_fmodf(a, b);
}

static inline double fmod_f64(double a, double b)
{
    return __builtin_fmod(a, b);
}

static inline TYPE abs_SFX(TYPE x)
{
    return x < 0 ? -x : x;
}

static inline float abs_f32(float x)
{
    return __builtin_fabsf(x);
}

static inline double abs_f64(double x)
{
    return __builtin_fabs(x);
}

static inline bool isinf_SFX(TYPE x)
{
    return abs_SFX(x) == __builtin_inf();
}

// The quotient rounded down, as Python divides integers.
static inline TYPE floordiv_SFX(TYPE a, TYPE b)
{
    TYPE quotient = a / b;
    return quotient - ((quotient * b != a) & ((a < 0) != (b < 0)));
}
