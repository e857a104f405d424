/* SPDX-License-Identifier: Apache-2.0 */
/* names.c: names of runs: two words that are easy to say and to type. */
#include "config.h"

#include <stdio.h>
#include <string.h>

#include "etude/run.h"
#include "core/base/need.h"

static const char *const adjectives[] = {
    "agile",  "amber",  "bold",   "brave", "brisk",  "bright", "calm",   "clever",
    "cosy",   "crisp",  "deft",   "dry",   "early",  "fair",   "fleet",  "fond",
    "gentle", "glad",   "golden", "happy", "hardy",  "humble", "jolly",  "keen",
    "kind",   "lively", "lucid",  "merry", "mild",   "neat",   "nimble", "noble",
    "plain",  "proud",  "quick",  "quiet", "ready",  "rosy",   "silent", "sleek",
    "smart",  "snug",   "sober",  "spry",  "steady", "sunny",  "swift",  "tidy",
    "tender", "vivid",  "warm",   "wise",  "witty",  "young",
};
static const char *const nouns[] = {
    "badger", "bison",  "crane",  "curlew",  "deer",   "dove",   "eagle",  "egret",
    "falcon", "ferret", "finch",  "fox",     "gecko",  "goose",  "hare",   "hawk",
    "heron",  "ibis",   "jay",    "kestrel", "koala",  "lark",   "lemur",  "lynx",
    "magpie", "marten", "mole",   "moose",   "newt",   "ocelot", "osprey", "otter",
    "owl",    "panda",  "plover", "puffin",  "quail",  "rabbit", "raven",  "robin",
    "salmon", "seal",   "stoat",  "stork",   "swan",   "tapir",  "tern",   "thrush",
    "toad",   "trout",  "vole",   "walrus",  "wombat", "wren",
};
enum {
    N_ADJECTIVES = sizeof adjectives / sizeof *adjectives,
    N_NOUNS = sizeof nouns / sizeof *nouns,
};

/* Fibonacci hashing: neighbouring seeds lie far apart, the high bits are the good
 * ones. */
const char *
et_run_name_draw(uint64_t seed, char *buf)
{
    if (!buf)
        return NULL;
    uint64_t x = (seed ^ seed >> 29) * UINT64_C(0x9e3779b97f4a7c15);
    snprintf(buf, ET_RUN_NAME, "%s-%s", adjectives[(x >> 40) % N_ADJECTIVES],
             nouns[(x >> 16 & 0xffffff) % N_NOUNS]);
    return buf;
}

et_status
et_run_name_check(struct et_ctx *cx, const char *name)
{
    ETI_NEED(cx, name);
    static const char letters[] =
        "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789";
    static const char all[] =
        "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789._-";
    size_t length = strlen(name);
    if (length == 0 || length >= ET_RUN_NAME)
        return ET_FAIL(cx, ET_EINVAL, "a run's name has 1 to %d bytes, not %zu",
                       ET_RUN_NAME - 1, length);
    if (strspn(name, letters) == 0 || strspn(name, all) != length)
        return ET_FAIL(
            cx, ET_EINVAL,
            "'%s' is not a run's name: letters, digits and . _ - only, and one of "
            "the first two to begin with",
            name);
    return ET_OK;
}
