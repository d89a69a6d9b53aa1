/* The opcodes are those of Python's pickletools; each value is pushed, and a mark tells a list
 * where it begins. */
#include "cli/pickle.h"

#include <string.h>

static void bytes_of(FILE *out, uint64_t n, int bytes)
{
    for (int i = 0; i < bytes; i++)
        fputc((int)(n >> (8 * i) & 255), out);
}

void pickle_begin(FILE *out) { fputs("\x80\x02", out); }
void pickle_end(FILE *out) { fputc('.', out); }

void pickle_text(FILE *out, const char *s)
{
    size_t n = strlen(s);
    fputc('X', out);
    bytes_of(out, n, 4);
    fwrite(s, 1, n, out);
}

void pickle_int(FILE *out, int64_t n)
{
    fputs("\x8a\x08", out);              /* LONG1 of 8 bytes */
    bytes_of(out, (uint64_t)n, 8);
}

void pickle_bool(FILE *out, int yes) { fputc(yes ? 0x88 : 0x89, out); }
void pickle_none(FILE *out) { fputc('N', out); }
void pickle_dict(FILE *out) { fputs("}(", out); }
void pickle_dict_end(FILE *out) { fputc('u', out); }
void pickle_list(FILE *out) { fputs("](", out); }
void pickle_list_end(FILE *out) { fputc('e', out); }
void pickle_pair(FILE *out) { fputc(0x86, out); }
