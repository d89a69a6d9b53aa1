/* SPDX-License-Identifier: MIT */
#include "text.h"

#include "file.h"

#include <dirent.h>
#include <errno.h>
#include <limits.h>
#include <math.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

/* characters; less cannot be learnt from, and judged by */
enum { LEARN_LEAST = 900, HELD_LEAST = 50 };

/* The cache file: this, then one byte per token. */
struct header {
    char     magic[8];
    uint64_t fingerprint;       /* of the names, sizes and times of the files it was made from */
    uint64_t learn, held;
    uint32_t vocabulary, files;
    uint8_t  symbols[256];              /* symbols[token] is its byte */
};

static const char magic[8] = "chars 1";

struct source { char *path; struct stat about; };
struct sources { struct source *all; int count, room; };
struct bytes { unsigned char *data; size_t count; };

static int explain(char *why, const char *path, int error)
{
    snprintf(why, TEXT_WHY, "%s: %s", path, strerror(-error));
    return error;
}

/* ---- which files ---- */

static int sources_add(struct sources *sources, const char *path, const struct stat *about)
{
    for (int i = 0; i < sources->count; i++) {
        const struct stat *known = &sources->all[i].about;
        if (known->st_dev == about->st_dev && known->st_ino == about->st_ino) return 0;
    }
    if (sources->count == sources->room) {
        int room = sources->room ? 2 * sources->room : 16;
        struct source *all = realloc(sources->all, (size_t)room * sizeof *all);
        if (!all) return -ENOMEM;
        sources->all = all;
        sources->room = room;
    }
    char *copy = strdup(path);
    if (!copy) return -ENOMEM;
    sources->all[sources->count++] = (struct source){ copy, *about };
    return 0;
}

static int sources_add_directory(struct sources *sources, const char *directory)
{
    struct dirent **entries;
    /* sorted: the same text on every machine */
    int count = scandir(directory, &entries, NULL, alphasort);
    if (count < 0) return -errno;
    int error = 0;
    for (int i = 0; i < count; i++) {
        char path[PATH_MAX];
        struct stat about;
        snprintf(path, sizeof path, "%s/%s", directory, entries[i]->d_name);
        free(entries[i]);
        if (error == 0 && stat(path, &about) == 0 && S_ISREG(about.st_mode))
            error = sources_add(sources, path, &about);
    }
    free(entries);
    return error;
}

static int sources_find(struct sources *sources, char *const paths[], int count, char *why)
{
    for (int i = 0; i < count; i++) {
        struct stat about;
        if (stat(paths[i], &about) < 0) return explain(why, paths[i], -errno);
        int error = S_ISDIR(about.st_mode) ? sources_add_directory(sources, paths[i])
                                           : sources_add(sources, paths[i], &about);
        if (error < 0) return explain(why, paths[i], error);
    }
    return 0;
}

static void sources_free(struct sources *sources)
{
    for (int i = 0; i < sources->count; i++) free(sources->all[i].path);
    free(sources->all);
}

static uint64_t mix(uint64_t hash, const void *data, size_t bytes)     /* FNV-1a */
{
    const unsigned char *byte = data;
    for (size_t i = 0; i < bytes; i++) hash = (hash ^ byte[i]) * 0x100000001b3u;
    return hash;
}

static uint64_t sources_fingerprint(const struct sources *sources)
{
    uint64_t hash = 0xcbf29ce484222325u;
    for (int i = 0; i < sources->count; i++) {
        const struct source *source = &sources->all[i];
        hash = mix(hash, source->path, strlen(source->path) + 1);
        hash = mix(hash, &source->about.st_size, sizeof source->about.st_size);
        hash = mix(hash, &source->about.st_mtim.tv_sec, sizeof source->about.st_mtim.tv_sec);
        hash = mix(hash, &source->about.st_mtim.tv_nsec, sizeof source->about.st_mtim.tv_nsec);
    }
    return hash;
}

/* ---- the cache ---- */

static int is_cache(const struct header *header, size_t bytes)
{
    if (bytes < sizeof *header || memcmp(header->magic, magic, sizeof magic) != 0) return 0;
    if (header->learn > bytes || header->held > bytes) return 0; /* so that their sum cannot wrap */
    if (header->learn < LEARN_LEAST || header->held < HELD_LEAST) return 0;
    if (header->vocabulary < 1 || header->vocabulary > 256) return 0;
    return header->learn + header->held == bytes - sizeof *header;
}

static int is_current(const char *cache, uint64_t fingerprint)
{
    void *data;
    size_t bytes;
    if (file_read(cache, &data, &bytes) < 0) return 0;
    const struct header *header = data;
    int current = is_cache(header, bytes) && header->fingerprint == fingerprint;
    free(data);
    return current;
}

static int append(struct bytes *to, const unsigned char *data, size_t count)
{
    if (count == 0) return 0;
    unsigned char *grown = realloc(to->data, to->count + count);
    if (!grown) return -ENOMEM;
    memcpy(grown + to->count, data, count);
    to->data = grown;
    to->count += count;
    return 0;
}

static int read_sources(const struct sources *sources, struct bytes *learn, struct bytes *held,
                        char *why)
{
    for (int i = 0; i < sources->count; i++) {
        const char *path = sources->all[i].path;
        void *data;
        size_t bytes;
        int error = file_read(path, &data, &bytes);
        if (error < 0) return explain(why, path, error);
        size_t seam = bytes - bytes / 10;
        error = append(learn, data, seam);
        if (error == 0) error = append(held, (unsigned char *)data + seam, bytes - seam);
        free(data);
        if (error < 0) return explain(why, path, error);
    }
    if (learn->count >= LEARN_LEAST && held->count >= HELD_LEAST) return 0;
    snprintf(why, TEXT_WHY, "too little text: %zu characters, %zu held out; needed are %d and %d",
             learn->count, held->count, LEARN_LEAST, HELD_LEAST);
    return -ENODATA;
}

static void number_symbols(struct header *header, struct bytes *learn, struct bytes *held)
{
    int occurs[256] = { 0 };
    unsigned char token[256];
    for (size_t i = 0; i < learn->count; i++) occurs[learn->data[i]] = 1;
    for (size_t i = 0; i < held->count; i++) occurs[held->data[i]] = 1;
    for (int symbol = 0; symbol < 256; symbol++) {
        if (!occurs[symbol]) continue;
        token[symbol] = (unsigned char)header->vocabulary;
        header->symbols[header->vocabulary++] = (uint8_t)symbol;
    }
    for (size_t i = 0; i < learn->count; i++) learn->data[i] = token[learn->data[i]];
    for (size_t i = 0; i < held->count; i++) held->data[i] = token[held->data[i]];
}

static int write_cache(const char *cache, struct header *header, struct bytes *learn,
                       struct bytes *held, char *why)
{
    header->learn = learn->count;
    header->held = held->count;
    number_symbols(header, learn, held);
    const struct iovec parts[] = {
        { header, sizeof *header }, { learn->data, learn->count }, { held->data, held->count },
    };
    int error = file_replace(cache, parts, 3);
    return error < 0 ? explain(why, cache, error) : 1;
}

static int prepare_from(const struct sources *sources, const char *cache, char *why)
{
    struct header header = {
        .fingerprint = sources_fingerprint(sources), .files = (uint32_t)sources->count
    };
    memcpy(header.magic, magic, sizeof magic);
    if (is_current(cache, header.fingerprint)) return 0;
    struct bytes learn = { NULL, 0 }, held = { NULL, 0 };
    int result = read_sources(sources, &learn, &held, why);
    if (result == 0) result = write_cache(cache, &header, &learn, &held, why);
    free(learn.data);
    free(held.data);
    return result;
}

int text_prepare(const char *cache, char *const paths[], int count, char *why)
{
    struct sources sources = { NULL, 0, 0 };
    int result = sources_find(&sources, paths, count, why);
    if (result == 0) result = prepare_from(&sources, cache, why);
    sources_free(&sources);
    return result;
}

/* ---- the data set ---- */

static int tokens_are_valid(const struct text *text)
{
    for (size_t i = 0; i < text->learn + text->held; i++)
        if (text->tokens[i] >= text->vocabulary) return 0;
    return 1;
}

static double unigram_entropy(const struct text *text)
{
    size_t count[256] = { 0 }, total = text->learn + text->held;
    for (size_t i = 0; i < total; i++) count[text->tokens[i]]++;
    double entropy = 0;
    for (int token = 0; token < text->vocabulary; token++) {
        double share = (double)count[token] / (double)total;
        if (share > 0) entropy -= share * log(share);
    }
    return entropy;
}

int text_use(const char *cache, struct text *text, char *why)
{
    void *data;
    size_t bytes;
    int error = file_read(cache, &data, &bytes);
    if (error < 0) return explain(why, cache, error);
    const struct header *header = data;
    if (!is_cache(header, bytes)) {
        free(data);
        return explain(why, cache, -EBADMSG);
    }
    *text = (struct text){
        .files = (int)header->files, .vocabulary = (int)header->vocabulary,
        .learn = header->learn, .held = header->held, .symbols = header->symbols,
        .tokens = (unsigned char *)data + sizeof *header, .memory = data,
    };
    if (!tokens_are_valid(text)) {
        text_free(text);
        return explain(why, cache, -EBADMSG);
    }
    text->unigram = unigram_entropy(text);
    return 0;
}

void text_free(struct text *text)
{
    free(text->memory);
    text->memory = NULL;
}
