/* Reads the text of a module: statements that end in ';', labels, braces, and of the directives
 * those that matter. One pass; branches are settled at the end of a function. */
#include "fake/ptx.h"

#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { NAMES_MOST = 1024, OPS_MOST = 1 << 16, NAME = 128, STATEMENT = 1024, OPERANDS = 6 };

enum what { A_ROW, A_PARAM, A_SHARED, A_LABEL };

/* count > 0: name0, name1, ... */
struct name { char name[NAME]; enum what what; int first, count, bits; size_t offset; };

struct reader {
    const char *at;
    int line;
    char why[512];
    struct ptx_module *module;
    struct ptx_function *f;
    struct name *name;
    int names, room;
    struct { int op; char label[NAME]; } *jump;
    int jumps;
};

static bool wrong(struct reader *r, const char *why, const char *what)
{
    if (!r->why[0])
        snprintf(r->why, sizeof r->why, what[0] ? "%.200s: '%.200s'" : "%.200s", why, what);
    return false;
}

/* ---- characters ------------------------------------------------------------------------------ */

static void skip(struct reader *r)
{
    for (;;) {
        if (r->at[0] == '/' && r->at[1] == '/') {
            r->at += strcspn(r->at, "\n");
        } else if (r->at[0] == '/' && r->at[1] == '*') {
            for (r->at += 2; *r->at && !(r->at[0] == '*' && r->at[1] == '/'); r->at++)
                r->line += *r->at == '\n';
            r->at += *r->at ? 2 : 0;
        } else if (isspace((unsigned char)*r->at)) {
            r->line += *r->at++ == '\n';
        } else {
            return;
        }
    }
}

/* Up to one of these characters, which is passed over; comments and runs of blanks become
 * one blank. */
static bool until(struct reader *r, const char *ends, char *into, size_t room, char *end)
{
    size_t n = 0;
    for (skip(r); *r->at && !strchr(ends, *r->at);) {
        const char *before = r->at;
        skip(r);
        char c = r->at == before ? *r->at++ : ' ';
        if (n + 1 == room)
            return wrong(r, "a statement is too long", "");
        into[n++] = c;
    }
    while (n && into[n - 1] == ' ')
        n--;
    into[n] = 0;
    *end = *r->at;
    r->at += *r->at != 0;
    return true;
}

/* ---- names ----------------------------------------------------------------------------------- */

static struct name *add_name(struct reader *r, const char *name, enum what what)
{
    if (r->names == NAMES_MOST || strlen(name) >= NAME || !name[0]) {
        wrong(r, "no room for this name", name);
        return NULL;
    }
    struct name *n = &r->name[r->names++];
    *n = (struct name){ .what = what };
    strcpy(n->name, name);
    return n;
}

/* The newest of that name; *row: the register's. */
static const struct name *find_name(const struct reader *r, const char *word, int *row)
{
    for (int i = r->names; i-- > 0;) {
        const struct name *n = &r->name[i];
        size_t length = strlen(n->name);
        *row = n->first;
        if (!n->count && !strcmp(n->name, word))
            return n;
        if (!n->count || strncmp(n->name, word, length) != 0
            || !isdigit((unsigned char)word[length]))
            continue;
        char *end;
        long which = strtol(word + length, &end, 10);
        *row = n->first + (int)which;
        if (!*end && which < n->count && (word[length] != '0' || !word[length + 1]))
            return n;
    }
    return NULL;
}

/* ---- declarations ---------------------------------------------------------------------------- */

static bool registers(struct reader *r, char *list)
{
    char *save = NULL, *word = strtok_r(list, " ,", &save);
    struct ptx_type type = ptx_type_of(word && word[0] == '.' ? word + 1 : "");
    if (!type.bits)
        return wrong(r, "no such type of a register", word ? word : "");
    while ((word = strtok_r(NULL, " ,", &save)) != NULL) {
        char *count = strchr(word, '<');
        if (count)
            *count++ = 0;
        if (ptx_special(word) >= 0 || !strcmp(word, "%tid") || !strcmp(word, "%ntid")
            || !strcmp(word, "%ctaid") || !strcmp(word, "%nctaid"))
            return wrong(r, "the name of a special register", word);
        struct name *n = add_name(r, word, A_ROW);
        if (!n)
            return false;
        n->count = count ? atoi(count) : 0;
        n->bits = type.bits;
        n->first = r->f->rows;
        r->f->rows += count ? n->count : 1;
        if ((count && n->count < 1) || r->f->rows > 1 << 14)
            return wrong(r, "no such number of registers", word);
    }
    return true;
}

/* ".align 8 .b8 name[1560]", of a parameter or of shared memory, laid out behind `used`. */
static bool place(struct reader *r, char *words, enum what what, size_t *used, size_t *offset,
                  size_t *bytes)
{
    char *save = NULL, *word = strtok_r(words, " ", &save);
    size_t align = 0;
    if (word && !strcmp(word, ".align")) {
        word = strtok_r(NULL, " ", &save);
        align = word ? (size_t)atoi(word) : 0;
        word = strtok_r(NULL, " ", &save);
    }
    struct ptx_type type = ptx_type_of(word && word[0] == '.' ? word + 1 : "");
    char *name = strtok_r(NULL, " ", &save);
    /* .ptr .global .align 4: what a pointer points to */
    while (name && (name[0] == '.' || isdigit((unsigned char)name[0])))
        name = strtok_r(NULL, " ", &save);
    if (!type.bits || !name)
        return wrong(r, "what is this variable?", name ? name : "");
    char *count = strchr(name, '[');
    if (count)
        *count++ = 0;
    *bytes = type.bits / 8u * (count ? (size_t)atoi(count) : 1);
    align = align ? align : type.bits / 8u;
    *offset = (*used + align - 1) / align * align;
    *used = *offset + *bytes;
    struct name *n = add_name(r, name, what);
    if (n)
        n->offset = *offset;
    return n != NULL;
}

/* ---- statements ------------------------------------------------------------------------------ */

static bool value_of(struct reader *r, const char *word, int bits, bool wider,
                     struct ptx_value *value)
{
    int row;
    *value = (struct ptx_value){ .row = -1 };
    if (ptx_constant(word, &value->constant)) {
        if (bits < 64)
            value->constant &= (UINT64_C(1) << bits) - 1;
        return true;
    }
    int one = ptx_special(word);
    if (one >= 0) {
        value->row = one;
        return bits == 32 || wrong(r, "special registers have 32 bits", word);
    }
    const struct name *n = find_name(r, word, &row);
    if (!n || n->what == A_LABEL)
        return wrong(r, "nothing has this name", word);
    if (n->what != A_ROW) {
        value->constant = n->offset;
        return bits == 64 || wrong(r, "an address has 64 bits", word);
    }
    value->row = row;
    if (bits == 1 ? n->bits != 1 : wider ? n->bits < bits || n->bits == 1 : n->bits != bits)
        return wrong(r, "a register of another size than the instruction's", word);
    return true;
}

static int split(char *list, char *operand[OPERANDS])
{
    int n = 1, depth = 0;
    operand[0] = list;
    for (char *at = list; *at; at++) {
        depth += (*at == '{' || *at == '[') - (*at == '}' || *at == ']');
        if (*at != ',' || depth)
            continue;
        if (n == OPERANDS)
            return -1;
        *at = 0;
        operand[n++] = at + 1 + strspn(at + 1, " ");
    }
    return n;
}

/* "{a, b}" or "a": how many, each into values. */
static int values_of(struct reader *r, char *words, int bits, bool wider, struct ptx_value *values)
{
    int n = 0;
    char *save = NULL;
    if (words[0] != '{')
        return value_of(r, words, bits, wider, values) ? 1 : 0;
    for (char *w = strtok_r(words, "{}, ", &save); w; w = strtok_r(NULL, "{}, ", &save))
        if (n == 4 || !value_of(r, w, bits, wider, &values[n++]))
            return 0;
    return n;
}

static bool address_of(struct reader *r, struct ptx_op *op, char *words, struct ptx_value *value)
{
    char *save = NULL, *end;
    if (words[0] != '[' || !strchr(words, ']'))
        return wrong(r, "an address stands in brackets", words);
    char *base = strtok_r(words, "[]+ ", &save), *more = strtok_r(NULL, "[]+ ", &save);
    if (!base || !value_of(r, base, 64, false, value))
        return false;
    op->offset = more ? strtoll(more, &end, 0) : 0;
    return !more || !*end || wrong(r, "no offset", more);
}

static bool plain_operands(struct reader *r, struct ptx_op *op, char *operand[], int n, int sources)
{
    int bits = op->type.bits, to = bits, wide = 2 * bits;
    bool is_wide = op->code == PTX_MUL_WIDE || op->code == PTX_MUL_WIDE_S
        || op->code == PTX_MAD_WIDE || op->code == PTX_MAD_WIDE_S;
    bool field = op->code == PTX_BFE || op->code == PTX_BFE_S || op->code == PTX_BFI;
    bool shift = op->code == PTX_SHL || op->code == PTX_SHR || op->code == PTX_SHR_S;
    if (n != sources + 1)
        return wrong(r, "that many operands it has not", "");
    if (op->code == PTX_MOV && (operand[0][0] == '{' || operand[1][0] == '{')) {
        op->code = operand[0][0] == '{' ? PTX_UNPACK : PTX_PACK;
        char *whole = operand[op->code == PTX_UNPACK], *parts = operand[op->code != PTX_UNPACK],
             *at = parts;
        for (op->vector = 1; (at = strchr(at, ',')) != NULL; at++)
            op->vector++;
        if ((op->vector != 2 && op->vector != 4) || op->type.kind != 'b')
            return wrong(r, "two or four parts of a .b type", parts);
        return value_of(r, whole, bits, false, op->code == PTX_UNPACK ? &op->source[0] : &op->to[0])
            && values_of(r, parts, bits / op->vector, false,
                         op->code == PTX_UNPACK ? op->to : op->source)
            == op->vector;
    }
    if (op->code == PTX_SETP)
        to = 1;
    if (!value_of(r, operand[0], is_wide ? wide : to, op->code == PTX_CVT, &op->to[0])
        || op->to[0].row < PTX_ROWS)
        return wrong(r, "no register to write to", operand[0]);
    for (int i = 0; i < sources; i++) {
        int size = op->code == PTX_CVT ? op->from.bits : bits;
        if ((is_wide && i == 2))
            size = wide;
        if ((shift && i == 1) || (field && i >= sources - 2))
            size = 32;
        if (op->code == PTX_SELP && i == 2)
            size = 1;
        if (!value_of(r, operand[i + 1], size, op->code == PTX_CVT, &op->source[i]))
            return false;
    }
    return true;
}

static bool operands(struct reader *r, struct ptx_op *op, char *list, int sources)
{
    char *operand[OPERANDS];
    int n = list[0] ? split(list, operand) : 0;
    if (n < 0)
        return wrong(r, "too many operands", "");
    switch (op->code) {
    case PTX_RET:
        return n == 0 || wrong(r, "a kernel returns nothing", list);
    case PTX_BAR:
        r->f->barriers = true;
        return (n == 1 && !strcmp(operand[0], "0"))
            || wrong(r, "only barrier 0 of all threads", list);
    case PTX_BRA:
        if (n != 1 || strlen(operand[0]) >= NAME)
            return wrong(r, "where to?", list);
        r->jump = realloc(r->jump, ((size_t)r->jumps + 1) * sizeof r->jump[0]);
        if (!r->jump)
            abort();
        r->jump[r->jumps].op = r->f->ops_n;
        strcpy(r->jump[r->jumps++].label, operand[0]);
        return true;
    case PTX_LD:
        return n == 2 && values_of(r, operand[0], op->type.bits, true, op->to) == op->vector
                && address_of(r, op, operand[1], &op->source[0])
            ? true
            : wrong(r, "how many values from where?", operand[0]);
    case PTX_ST:
        if (op->space == PTX_PARAM)
            return wrong(r, "parameters are not written", "");
        return n == 2 && values_of(r, operand[1], op->type.bits, true, op->to) == op->vector
                && address_of(r, op, operand[0], &op->source[0])
            ? true
            : wrong(r, "how many values to where?", operand[0]);
    default:
        return plain_operands(r, op, operand, n, sources);
    }
}

static bool instruction(struct reader *r, char *text)
{
    struct ptx_op op = {
        .guard = -1, .vector = 1, .line = r->line,
        .source = { { -1, 0 }, { -1, 0 }, { -1, 0 }, { -1, 0 } }
    };
    char part[PTX_PARTS][16], *word = text;
    int parts = 0, sources = 0;
    if (*word == '@') {
        struct ptx_value guard;
        op.guard_not = word[1] == '!';
        word += 1 + op.guard_not;
        char *end = word + strcspn(word, " ");
        text = end + (*end != 0);
        *end = 0;
        if (!value_of(r, word, 1, false, &guard) || guard.row < 0)
            return wrong(r, "no predicate", word);
        op.guard = guard.row;
        word = text;
    }
    char *list = word + strcspn(word, " ");
    if (*list)
        *list++ = 0;
    for (char *save = NULL, *w = strtok_r(word, ".", &save); w; w = strtok_r(NULL, ".", &save)) {
        if (parts == PTX_PARTS || strlen(w) >= sizeof part[0])
            return wrong(r, "no such instruction", w);
        strcpy(part[parts++], w);
    }
    const char *why = parts ? ptx_decode(&op, part, parts, &sources) : "nothing";
    if (why)
        return wrong(r, why, "");
    if (!operands(r, &op, list, sources))
        return false;
    if (r->f->ops_n == r->room) {
        r->room = r->room ? 2 * r->room : 256;
        r->f->ops = r->room > OPS_MOST ? NULL : realloc(r->f->ops, (size_t)r->room * sizeof op);
        if (!r->f->ops)
            abort();
    }
    r->f->ops[r->f->ops_n++] = op;
    return true;
}

static bool settle_jumps(struct reader *r)
{
    for (int i = 0; i < r->jumps; i++) {
        int row;
        const struct name *n = find_name(r, r->jump[i].label, &row);
        if (!n || n->what != A_LABEL)
            return wrong(r, "no such label", r->jump[i].label);
        r->f->ops[r->jump[i].op].target = n->first;
    }
    return true;
}

static bool statement(struct reader *r, char *text)
{
    size_t bytes, offset;
    if (!strncmp(text, ".reg ", 5))
        return registers(r, text + 5);
    if (!strncmp(text, ".shared ", 8))
        return place(r, text + 8, A_SHARED, &r->f->shared_bytes, &offset, &bytes) &&
               (r->f->shared_bytes <= PTX_SHARED_MOST || wrong(r, "too much shared memory", ""));
    if (!strncmp(text, ".pragma", 7) || !text[0])
        return true;
    char was[STATEMENT];
    strcpy(was, text);
    if (text[0] == '.' || !instruction(r, text)) {
        char why[512];
        strcpy(why, r->why[0] ? r->why : "no such directive");
        r->why[0] = 0;
        return wrong(r, why, was);
    }
    return true;
}

static bool body(struct reader *r)
{
    char text[STATEMENT], end;
    for (int depth = 1; depth;) {
        skip(r);
        if (*r->at == '{' || *r->at == '}') {
            depth += *r->at++ == '{' ? 1 : -1;
            continue;
        }
        if (!strncmp(r->at, ".loc", 4)) {
            r->at += strcspn(r->at, "\n");
            continue;
        }
        size_t label = strspn(r->at,
                              "$_abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789");
        if (label && r->at[label] == ':' && label < NAME) {
            memcpy(text, r->at, label);
            text[label] = 0;
            struct name *n = add_name(r, text, A_LABEL);
            if (!n)
                return false;
            n->first = r->f->ops_n;
            r->at += label + 1;
            continue;
        }
        if (!until(r, ";", text, sizeof text, &end) || end != ';')
            return wrong(r, "the text ends within a function", r->f->name);
        if (!statement(r, text))
            return false;
    }
    return settle_jumps(r);
}

static bool entry(struct reader *r)
{
    char text[STATEMENT], end;
    struct ptx_module *m = r->module;
    m->functions = realloc(m->functions, ((size_t)m->functions_n + 1) * sizeof *m->functions);
    if (!m->functions)
        abort();
    struct ptx_function *f = r->f = &m->functions[m->functions_n++];
    *f = (struct ptx_function){ .rows = PTX_ROWS };
    r->names = r->jumps = r->room = 0;
    if (!until(r, "({", text, sizeof text, &end) || strlen(text) >= sizeof f->name || !text[0])
        return wrong(r, "a kernel without a name", text);
    strcpy(f->name, text);
    while (end == '(' || end == ',') {
        if (!until(r, ",)", text, sizeof text, &end) || (!text[0] && end == ')'))
            break;
        if (strncmp(text, ".param ", 7) != 0 || f->params == PTX_PARAMS_MOST
            || !place(r, text + 7, A_PARAM, &f->param_bytes, &f->param[f->params].offset,
                      &f->param[f->params].bytes)
            || f->param_bytes > PTX_PARAM_BYTES)
            return wrong(r, "no parameter", text);
        f->params++;
    }
    for (skip(r); *r->at && *r->at != '{'; skip(r))      /* .maxntid and its like */
        r->at++;
    return *r->at++ == '{' ? body(r) : wrong(r, "a kernel without a body", f->name);
}

static bool module(struct reader *r)
{
    char word[STATEMENT];
    for (skip(r); *r->at; skip(r)) {
        size_t n = strcspn(r->at, " \t\n\r({;/");
        if (n == 0 || n >= sizeof word)
            return wrong(r, "nothing of the outermost level", r->at);
        memcpy(word, r->at, n);
        word[n] = 0;
        r->at += n;
        if (!strcmp(word, ".version") || !strcmp(word, ".target") || !strcmp(word, ".address_size")
            || !strcmp(word, ".file"))
            r->at += strcspn(r->at, "\n");
        else if (!strcmp(word, ".entry") ? !entry(r) : strcmp(word, ".visible") != 0)
            return wrong(r, "nothing of the outermost level", word);
    }
    return true;
}

struct ptx_module *ptx_parse(const char *text)
{
    struct reader r = {
        .at = text, .line = 1, .module = calloc(1, sizeof *r.module),
        .name = calloc(NAMES_MOST, sizeof *r.name)
    };
    if (!r.module || !r.name)
        abort();
    bool good = module(&r);
    if (!good) {
        fprintf(stderr, "fake CUDA: PTX line %d: %s\n", r.line, r.why);
        ptx_free(r.module);
    }
    free(r.name);
    free(r.jump);
    return good ? r.module : NULL;
}

void ptx_free(struct ptx_module *m)
{
    for (int i = 0; i < m->functions_n; i++)
        free(m->functions[i].ops);
    free(m->functions);
    free(m);
}

const struct ptx_function *ptx_function(const struct ptx_module *m, const char *name)
{
    for (int i = 0; i < m->functions_n; i++)
        if (!strcmp(m->functions[i].name, name))
            return &m->functions[i];
    return NULL;
}
