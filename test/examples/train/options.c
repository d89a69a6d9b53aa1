/* SPDX-License-Identifier: MIT */
#include "options.h"

#include <errno.h>
#include <getopt.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>

const char options_help[] =
    "usage: tutti run -n RANKS train [OPTION...] [FILE...]\n"
    "\n"
    "Trains a small character-level language model on FILEs (a directory stands for\n"
    "the files in it; default: /usr/share/common-licenses).\n"
    "\n"
    "  --steps N          steps of training (default 2000)\n"
    "  --batch N          characters per step, all ranks together (default 256;\n"
    "                     rounded up to a multiple of the ranks)\n"
    "  --seed N           another number, other weights and batches (default 1)\n"
    "  --cache DIR        keep the prepared data set in DIR (default: a temporary\n"
    "                     directory, removed at the end)\n"
    "  --checkpoint FILE  keep the weights in FILE (default: \"checkpoint\" in DIR)\n"
    "  --bar              show a progress bar; without it, only where stdout is a\n"
    "                     terminal, and under tutti run it is not\n"
    "  --quiet            no progress, only the results\n"
    "  --help             this text\n"
    "\n"
    "Exit code: 0 the model has learnt, 1 it has not or something failed, 2 usage.\n";

static int read_number(const char *name, long least, long most, long *number)
{
    char *end;
    errno = 0;
    *number = strtol(optarg, &end, 10);
    if (errno == 0 && end != optarg && *end == '\0' && *number >= least && *number <= most)
        return 0;
    if (opterr)
        fprintf(stderr, "train: --%s %s: not a number from %ld to %ld\n", name, optarg, least,
                most);
    return -EINVAL;
}

int options_read(int argc, char **argv, struct options *options)
{
    static const struct option known[] = {
        { "steps", required_argument, NULL, 's' },      { "batch", required_argument, NULL, 'b' },
        { "seed", required_argument, NULL, 'r' },       { "cache", required_argument, NULL, 'c' },
        { "checkpoint", required_argument, NULL, 'k' }, { "bar", no_argument, NULL, 'p' },
        { "quiet", no_argument, NULL, 'q' },            { "help", no_argument, NULL, 'h' },
        { NULL, 0, NULL, 0 },
    };
    static char licences[] = "/usr/share/common-licenses";
    static char *const default_file[] = { licences };
    long steps = 2000, batch = 256, seed = 1;
    int error = 0;
    *options = (struct options){ .file = default_file, .files = 1 };
    for (int letter; error == 0 && (letter = getopt_long(argc, argv, "h", known, NULL)) != -1;) {
        switch (letter) {
        case 's': error = read_number("steps", 1, 100000000, &steps); break;
        case 'b': error = read_number("batch", 1, 1000000, &batch); break;
        case 'r': error = read_number("seed", 0, LONG_MAX, &seed); break;
        case 'c': options->cache = optarg; break;
        case 'k': options->checkpoint = optarg; break;
        case 'p': options->bar = 1; break;
        case 'q': options->quiet = 1; break;
        case 'h': return 1;
        default: error = -EINVAL;
        }
    }
    options->steps = (int)steps;
    options->batch = (int)batch;
    options->seed = (uint64_t)seed;
    if (optind < argc) {
        options->file = argv + optind;
        options->files = argc - optind;
    }
    return error;
}
