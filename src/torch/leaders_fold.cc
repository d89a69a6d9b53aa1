/* The library folds what ranks of this host give; what comes from other hosts is folded here, a
 * part for each host. Cost: each part is read once. */
#include "torch/leaders_fold.h"

#include <c10/util/BFloat16.h>
#include <c10/util/Float8_e4m3fn.h>
#include <c10/util/Float8_e5m2.h>
#include <c10/util/Half.h>

#include <algorithm>
#include <cmath>
#include <complex>
#include <limits>
#include <type_traits>

namespace tutti {

size_t type_size(tutti_type type)
{
    switch (type) {
    case TUTTI_I8: case TUTTI_U8: case TUTTI_BOOL: case TUTTI_F8E4M3: case TUTTI_F8E5M2: return 1;
    case TUTTI_I16: case TUTTI_U16: case TUTTI_F16: case TUTTI_BF16: return 2;
    case TUTTI_I32: case TUTTI_U32: case TUTTI_F32: return 4;
    case TUTTI_C128: return 16;
    default: return 8;
    }
}

namespace {

template <class T> struct Is_complex : std::false_type {};
template <class T> struct Is_complex<std::complex<T>> : std::true_type {};

/* what sums are kept in, and how */
template <class T> struct Sum { using type = T; };
template <> struct Sum<c10::Half> { using type = float; };
template <> struct Sum<c10::BFloat16> { using type = float; };
template <> struct Sum<c10::Float8_e4m3fn> { using type = float; };
template <> struct Sum<c10::Float8_e5m2> { using type = float; };

template <class A> A one_nan(A a)
{
    if constexpr (std::is_floating_point_v<A>)
        return a != a ? std::numeric_limits<A>::quiet_NaN() : a;
    else
        return a;
}

/* out = a (op) b, each of them what sums are kept in. */
template <tutti_op op, class A> A folded(A a, A b)
{
    if constexpr (op == TUTTI_MIN || op == TUTTI_MAX) {
        if constexpr (std::is_floating_point_v<A>) {
            if (a != a || b != b)
                return std::numeric_limits<A>::quiet_NaN();
            if (a == b)                 /* -0 < +0 */
                return std::signbit(a) == (op == TUTTI_MIN) ? a : b;
        }
        return (op == TUTTI_MIN) == (a < b) ? a : b;
    } else if constexpr (std::is_integral_v<A>) {
        using U = std::make_unsigned_t<A>;
        if constexpr (op == TUTTI_BAND)
            return (A)(a & b);
        else if constexpr (op == TUTTI_BOR)
            return (A)(a | b);
        else if constexpr (op == TUTTI_BXOR)
            return (A)(a ^ b);
        else if constexpr (op == TUTTI_PROD)        /* they wrap, in 64 bits for smaller ones */
            return (A)(U)((uint64_t)(U)a * (uint64_t)(U)b);
        else
            return (A)(U)((U)a + (U)b);
    } else if constexpr (op == TUTTI_PROD)
        return a * b;
    else
        return a + b;
}

enum { BLOCK = 512 };

/* n elements. Inlined with a constant n: a compiler makes vectors of it at -O2. */
template <tutti_op op, bool mean, class T, class A>
[[gnu::always_inline]] inline void fold_block(T *out, const std::vector<const void *> &parts,
                                              size_t from, size_t n,
                                              const std::vector<int> &weights, A whole)
{
    A sum[BLOCK];
    const T *part = (const T *)parts[0] + from;
    A weight = mean ? (A)weights[0] : A();
    for (size_t i = 0; i < n; i++)
        sum[i] = mean ? (A)part[i] * weight : (A)part[i];
    for (size_t p = 1; p < parts.size(); p++) {
        part = (const T *)parts[p] + from;
        weight = mean ? (A)weights[p] : A();
        for (size_t i = 0; i < n; i++)
            sum[i] = folded<op, A>(sum[i], mean ? (A)part[i] * weight : (A)part[i]);
    }
    for (size_t i = 0; i < n; i++)
        out[from + i] = (T)one_nan(mean ? sum[i] / whole : sum[i]);
}

template <tutti_op op, bool mean, class T, class A>
void fold_op(T *out, const std::vector<const void *> &parts, size_t count,
             const std::vector<int> &weights)
{
    int ranks = 0;
    for (int w : weights)
        ranks += w;
    size_t from = 0;
    for (; from + BLOCK <= count; from += BLOCK)
        fold_block<op, mean, T, A>(out, parts, from, BLOCK, weights, (A)ranks);
    fold_block<op, mean, T, A>(out, parts, from, count - from, weights, (A)ranks);
}

template <class T, class A>
void fold_as(T *out, const std::vector<const void *> &parts, size_t count, tutti_op op,
             const std::vector<int> &weights)
{
    if constexpr (!Is_complex<A>::value) {
        switch (op) {
        case TUTTI_MIN: return fold_op<TUTTI_MIN, false, T, A>(out, parts, count, weights);
        case TUTTI_MAX: return fold_op<TUTTI_MAX, false, T, A>(out, parts, count, weights);
        default: break;
        }
    }
    if constexpr (std::is_integral_v<A>) {
        switch (op) {
        case TUTTI_BAND: return fold_op<TUTTI_BAND, false, T, A>(out, parts, count, weights);
        case TUTTI_BOR: return fold_op<TUTTI_BOR, false, T, A>(out, parts, count, weights);
        case TUTTI_BXOR: return fold_op<TUTTI_BXOR, false, T, A>(out, parts, count, weights);
        default: break;
        }
    }
    if constexpr (std::is_floating_point_v<A>)
        if (op == TUTTI_AVG)
            return fold_op<TUTTI_SUM, true, T, A>(out, parts, count, weights);
    if (op == TUTTI_PROD)
        return fold_op<TUTTI_PROD, false, T, A>(out, parts, count, weights);
    fold_op<TUTTI_SUM, false, T, A>(out, parts, count, weights);
}

template <class T>
void fold_real(void *out, const std::vector<const void *> &parts, size_t count, tutti_op op,
               const std::vector<int> &weights)
{
    fold_as<T, typename Sum<T>::type>((T *)out, parts, count, op, weights);
}

template <class R>
void fold_complex(void *out, const std::vector<const void *> &parts, size_t count, tutti_op op,
                  const std::vector<int> &weights)
{
    if (op == TUTTI_PROD)
        fold_as<std::complex<R>, std::complex<R>>((std::complex<R> *)out, parts, count, op,
                                                  weights);
    else
        fold_as<R, R>((R *)out, parts, 2 * count, op, weights);
}

void fold_bool(unsigned char *out, const std::vector<const void *> &parts, size_t count,
               tutti_op op)
{
    for (size_t i = 0; i < count; i++) {
        bool sum = ((const unsigned char *)parts[0])[i];
        for (size_t p = 1; p < parts.size(); p++) {
            bool next = ((const unsigned char *)parts[p])[i];
            sum = op == TUTTI_PROD || op == TUTTI_MIN || op == TUTTI_BAND ? sum && next
                : op == TUTTI_BXOR ? sum != next
                : sum || next;
        }
        out[i] = sum;
    }
}

template <class W, class T> void widen_as(W *out, const T *in, size_t count)
{
    for (size_t i = 0; i < count; i++)
        out[i] = (W)in[i];
}

template <class W, class T> void narrow_as(T *out, const W *in, size_t count, int divisor)
{
    for (size_t i = 0; i < count; i++)
        out[i] = (T)(in[i] / (W)divisor);
}

}

void fold_parts(void *out, const std::vector<const void *> &parts, size_t count, tutti_type type,
                tutti_op op, const std::vector<int> &weights)
{
    switch (type) {
    case TUTTI_I8: return fold_real<int8_t>(out, parts, count, op, weights);
    case TUTTI_U8: return fold_real<uint8_t>(out, parts, count, op, weights);
    case TUTTI_I16: return fold_real<int16_t>(out, parts, count, op, weights);
    case TUTTI_U16: return fold_real<uint16_t>(out, parts, count, op, weights);
    case TUTTI_I32: return fold_real<int32_t>(out, parts, count, op, weights);
    case TUTTI_U32: return fold_real<uint32_t>(out, parts, count, op, weights);
    case TUTTI_I64: return fold_real<int64_t>(out, parts, count, op, weights);
    case TUTTI_U64: return fold_real<uint64_t>(out, parts, count, op, weights);
    case TUTTI_F16: return fold_real<c10::Half>(out, parts, count, op, weights);
    case TUTTI_BF16: return fold_real<c10::BFloat16>(out, parts, count, op, weights);
    case TUTTI_F32: return fold_real<float>(out, parts, count, op, weights);
    case TUTTI_F64: return fold_real<double>(out, parts, count, op, weights);
    case TUTTI_F8E4M3: return fold_real<c10::Float8_e4m3fn>(out, parts, count, op, weights);
    case TUTTI_F8E5M2: return fold_real<c10::Float8_e5m2>(out, parts, count, op, weights);
    case TUTTI_C64: return fold_complex<float>(out, parts, count, op, weights);
    case TUTTI_C128: return fold_complex<double>(out, parts, count, op, weights);
    case TUTTI_BOOL: return fold_bool((unsigned char *)out, parts, count, op);
    }
}

void widen(void *out, const void *in, size_t count, tutti_type type)
{
    switch (type) {
    case TUTTI_I8: return widen_as((int64_t *)out, (const int8_t *)in, count);
    case TUTTI_I16: return widen_as((int64_t *)out, (const int16_t *)in, count);
    case TUTTI_I32: return widen_as((int64_t *)out, (const int32_t *)in, count);
    case TUTTI_U8: return widen_as((uint64_t *)out, (const uint8_t *)in, count);
    case TUTTI_U16: return widen_as((uint64_t *)out, (const uint16_t *)in, count);
    case TUTTI_U32: return widen_as((uint64_t *)out, (const uint32_t *)in, count);
    default: return widen_as((uint64_t *)out, (const uint64_t *)in, count);
    }
}

void narrow(void *out, const void *in, size_t count, tutti_type type, int divisor)
{
    switch (type) {
    case TUTTI_I8: return narrow_as((int8_t *)out, (const int64_t *)in, count, divisor);
    case TUTTI_I16: return narrow_as((int16_t *)out, (const int64_t *)in, count, divisor);
    case TUTTI_I32: return narrow_as((int32_t *)out, (const int64_t *)in, count, divisor);
    case TUTTI_I64: return narrow_as((int64_t *)out, (const int64_t *)in, count, divisor);
    case TUTTI_U8: return narrow_as((uint8_t *)out, (const uint64_t *)in, count, divisor);
    case TUTTI_U16: return narrow_as((uint16_t *)out, (const uint64_t *)in, count, divisor);
    case TUTTI_U32: return narrow_as((uint32_t *)out, (const uint64_t *)in, count, divisor);
    default: return narrow_as((uint64_t *)out, (const uint64_t *)in, count, divisor);
    }
}

}
