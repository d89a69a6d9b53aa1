/* What ranks write, cut into lines: in any pieces, from several at once, with and without tags.
 * Nothing is lost, and no line is torn. */
#include "fuzz.h"

#include "launch/line_splitter.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct feed feed = { data, size };
    struct output_stream out;
    struct line_splitter lines[3];
    size_t given = 0;
    output_stream_open(&out, -1);
    uint8_t tags = feed_byte(&feed);
    for (int i = 0; i < 3; i++) {
        lines[i] = (struct line_splitter){ .out = &out };
        if (tags >> i & 1)
            snprintf(lines[i].tag, sizeof lines[i].tag, "[%d] ", i);
    }
    while (feed.left) {
        uint8_t how = feed_byte(&feed);
        size_t n = 1 + (size_t)(feed_byte(&feed) % 40) * (how & 8 ? 2000 : 1);
        struct line_splitter *l = &lines[how % 3];
        if (how & 4)
            line_splitter_show(l);
        char *bytes = malloc(n);
        FUZZ_MUST(bytes);
        feed_bytes(&feed, bytes, n);
        line_splitter_take(l, bytes, n);
        FUZZ_MUST(l->used <= 64 * 1024);
        given += n;
        free(bytes);
    }
    for (int i = 0; i < 3; i++)
        line_splitter_end(&lines[i]);
    FUZZ_MUST(out.to - out.from >= given);
    output_stream_close(&out);
    return 0;
}
