/* Job: PTX text, read and run: what the parts of the fake's own interpreter share.
 * Owns: nothing.
 * Never: streams, ranges, CUDA's objects: memory is a list of windows, given with the launch.
 *
 * It knows what our generator writes and what small kernels need: 32 and 64-bit arithmetic, f16 as
 * a type to convert, branches, shared memory and barriers. Whatever else stands in a text makes it
 * invalid, and a line on stderr says what it was. Sizes of registers are held against the types of
 * instructions, as the real assembler does.
 *
 * A register is a row of 64-bit values, one for each lane (thread), upper bits zero. Every lane has
 * its own place in the code; those at the lowest place go first, as one, until they come to where
 * others wait: so branches that part meet again as they do on a GPU. */
#ifndef TUTTI_TEST_GPU_FAKE_PTX_H
#define TUTTI_TEST_GPU_FAKE_PTX_H

#include "gpu/cuda_api.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum {
    PTX_PARAMS_MOST = 32,
    PTX_PARAM_BYTES = 4352,
    PTX_SOURCES = 4,
    PTX_LANES = 128,
    PTX_SHARED_MOST = 48 << 10
};

/* Codes of all instructions; a letter for the class: F f32, D f64, S signed. What has none serves
 * all integers. */
enum ptx_code {
    PTX_ADD, PTX_ADD_F, PTX_ADD_D, PTX_SUB, PTX_SUB_F, PTX_SUB_D, PTX_MUL, PTX_MUL_F, PTX_MUL_D,
    PTX_MUL_HI, PTX_MUL_HI_S, PTX_MUL_WIDE, PTX_MUL_WIDE_S, PTX_MAD, PTX_MAD_WIDE, PTX_MAD_WIDE_S,
    PTX_FMA_F, PTX_FMA_D, PTX_DIV, PTX_DIV_S, PTX_DIV_F, PTX_DIV_D, PTX_REM, PTX_REM_S, PTX_NEG_S,
    PTX_NEG_F, PTX_NEG_D, PTX_ABS_S, PTX_ABS_F, PTX_ABS_D, PTX_MIN, PTX_MIN_S, PTX_MIN_F, PTX_MIN_D,
    PTX_MAX, PTX_MAX_S, PTX_MAX_F, PTX_MAX_D, PTX_SQRT_F, PTX_SQRT_D, PTX_AND, PTX_OR, PTX_XOR,
    PTX_NOT, PTX_SHL, PTX_SHR, PTX_SHR_S, PTX_BFE, PTX_BFE_S, PTX_BFI, PTX_PRMT, PTX_MOV,
    PTX_UNPACK, PTX_PACK, PTX_SELP, PTX_SETP, PTX_CVT, PTX_LD, PTX_ST, PTX_BRA, PTX_RET, PTX_BAR,
};

enum ptx_compare { PTX_EQ, PTX_NE, PTX_LT, PTX_LE, PTX_GT, PTX_GE, PTX_NUM, PTX_NAN };
enum ptx_space { PTX_GLOBAL, PTX_PARAM, PTX_SHARED };
enum ptx_round { PTX_NONE, PTX_RN, PTX_RNI, PTX_RZI };

/* kind: b u s f p; 'p' has one bit, 0 bits: there is none */
struct ptx_type { char kind; unsigned char bits; };

struct ptx_value { int row; uint64_t constant; };    /* row -1: the constant */

struct ptx_op {
    enum ptx_code code;
    struct ptx_type type, from;                      /* from: cvt's second */
    enum ptx_compare compare;
    bool unordered;                                  /* true where one is a NaN */
    enum ptx_space space;
    enum ptx_round round;
    int guard;                                       /* row of its predicate, -1: none */
    bool guard_not;
    int vector;                                 /* 1, 2, 4: values of a ld, st or of a packed mov */
    struct ptx_value to[4], source[PTX_SOURCES];
    int64_t offset;                                  /* of an address */
    int target;                                      /* of a branch: an op's number */
    int line;
};

struct ptx_function {
    char name[128];
    int rows;                                        /* of registers, the special ones first */
    int params;
    struct { size_t offset, bytes; } param[PTX_PARAMS_MOST];
    size_t param_bytes, shared_bytes;
    bool barriers;
    struct ptx_op *ops;
    int ops_n;
};

struct ptx_module { struct ptx_function *functions; int functions_n; };

/* The special registers' rows. */
enum {
    PTX_TID,
    PTX_NTID = PTX_TID + 3,
    PTX_CTAID = PTX_NTID + 3,
    PTX_NCTAID = PTX_CTAID + 3,
    PTX_LANEID = PTX_NCTAID + 3,
    PTX_ROWS
};

/* NULL: not valid, and stderr has why. */
struct ptx_module *ptx_parse(const char *text);
void ptx_free(struct ptx_module *module);
const struct ptx_function *ptx_function(const struct ptx_module *module, const char *name);

/* ptx_code.c: the words of the language. ptx_decode: a mnemonic, in parts, into op; NULL,
 * or why not. */
enum { PTX_PARTS = 8 };
const char *ptx_decode(struct ptx_op *op, char part[PTX_PARTS][16], int parts, int *sources);
struct ptx_type ptx_type_of(const char *word);
int ptx_special(const char *word);              /* the row of a special register; -1: it is none */
bool ptx_constant(const char *word, uint64_t *value);

/* Device addresses [begin, end) are the bytes at `at`. */
struct ptx_window { uint64_t begin, end; unsigned char *at; bool write; };

struct ptx_launch {
    const struct ptx_function *function;
    unsigned grid[3], block[3];
    size_t shared_bytes;                             /* asked for with the launch */
    unsigned char param[PTX_PARAM_BYTES];
    struct ptx_window *window;
    int windows;
};

/* All threads of all blocks. 0, or what the context dies of: 700 no such memory, 716 not aligned,
 * 702 it does not end. */
CUresult ptx_run(const struct ptx_launch *launch);

/* ptx_exec.c: one instruction that touches registers only, for these lanes. row[n * room + lane] */
void ptx_exec(const struct ptx_op *op, uint64_t *rows, int room, const uint16_t *lanes, int n);

#endif
