/* Job: declare what the files that write a kernel's text share: the walk over memory (ptx.c), the
 *      arithmetic of one cell (ptx_arith.c), small floats in and out of it (ptx_small.c).
 * Owns: nothing.
 * Never: is included by other files.
 *
 * A thread loads words of 32 or 64 bits. It takes cells out of a word. A cell is a register of 32
 * or 64 bits with one element, or one part of a complex number, in the form that is computed with.
 * Registers are untyped (.b32, .b64), so each instruction says how it reads them:
 *
 *   %w0...    words of a contribution as loaded, then of the result
 *   %a0...    cells of the result so far
 *   %n0 %n1   cells of the next contribution: one, or both parts of a complex number
 *   %f0 %f1   its factor
 *   %x0-7 %y0-7 %h0-1 %p0-3   scratch of 32, 64, 16 bits, predicates; nothing in them outlives
 *                             one function */
#ifndef TUTTI_GPU_PTX_CELL_H
#define TUTTI_GPU_PTX_CELL_H

#include "base/text.h"

#include <stdbool.h>
#include <tutti.h>

enum ptx_way {
    WAY_WORDS,                  /* and, or, xor: whole words, whatever is in them */
    WAY_TRUTH,                  /* 0 or 1 in a cell */
    WAY_INTEGER,                /* extended by zeroes, or by the sign where that matters */
    WAY_FLOAT,                  /* f32 or f64 */
    WAY_EXTREME,                /* a float as a signed integer with the same order */
};

struct ptx {
    struct text *out;
    tutti_type type;
    tutti_op op;
    enum ptx_way way;
    bool sign, complex;               /* integers with a sign; two parts to an element */
    bool pairs;                       /* the parts mix: a complex product */
    int size, part;                   /* bytes of an element, of a cell in memory */
    int word, cell;                   /* bits of a word's and a cell's register */
    int per_word;                     /* cells in a word of the fast walk */
    int vectors;                      /* of 16 bytes that a thread has under way in the fast walk */
};

/* One instruction, indented. */
__attribute__((format(printf, 2, 3))) void ptx_say(const struct ptx *p, const char *format, ...);

/* ptx_arith.c. A register is named by its letter and number: 'a', 3 is %a3. */
struct reg { char letter; int n; };
#define REG(letter, n) ((struct reg){ (letter), (n) })

void ptx_begin(const struct ptx *p);                    /* once: the divisor as it will be used */
/* Takes cell number `at` out of the word. */
void ptx_take(const struct ptx *p, struct reg cell, struct reg word, int at);
void ptx_scale(const struct ptx *p, int parts);                          /* %n = %n o %f */
void ptx_step(const struct ptx *p, int cell, int parts);                 /* %a = %a o %n */
/* Makes the bits of an element, in the low end of the cell. */
void ptx_finish(const struct ptx *p, struct reg cell);
void ptx_give(const struct ptx *p, struct reg word, struct reg cell, int at);

/* ptx_small.c: f16, bf16, f8e4m3, f8e5m2 */
void ptx_widen(const struct ptx *p, struct reg cell, struct reg word, int at);
void ptx_narrow(const struct ptx *p, struct reg cell);

#endif
