/* The arithmetic of reductions by its definition, one element at a time, for the tests of kernels
 * that fold_test.c does not hold against a model of its own. A float of at most 16 bits is found by
 * searching among the values of all codes; nothing here knows bit patterns of f32, vectors, or the
 * conversions of the library. */
#ifndef TEST_FOLD_MODEL_H
#define TEST_FOLD_MODEL_H

#include <stddef.h>
#include <stdint.h>
#include <tutti.h>

int      model_is_float(tutti_type type);   /* f16, bf16, f32, f64, 8-bit floats */
int      model_is_complex(tutti_type type);
size_t   model_size(tutti_type type);
uint64_t model_get(const uint8_t *from, size_t size);
void     model_put(uint8_t *to, uint64_t bits, size_t size);

/* The value of an element's bits, and the bits of the nearest element; ties to the even code. */
double   model_value(uint64_t bits, tutti_type type);
uint64_t model_bits(double value, tutti_type type);

/* The first magnitude that is no finite number any more: infinity's code, or E4M3's NaN; and what
 * would be its value. */
unsigned model_beyond(tutti_type type);
double   model_magnitude(unsigned code, tutti_type type);

/* Rounded to what the type accumulates in: f64 for f64 and c128, else f32. */
double model_accumulated(double value, tutti_type type);

/* n elements, values[r] in memory order as in a contribution, folded to out. factor: NULL, or one
 * element each. */
void model_fold(uint8_t *out, const uint8_t *const values[], const uint8_t *const factor[], int n,
                int divisor, tutti_type type, tutti_op op);

uint64_t model_random(void);
/* bits of one element, or of one part of a complex one: often one that goes wrong first */
uint64_t model_any(tutti_type type);

#endif
