/* SPDX-License-Identifier: Apache-2.0 */
/* diagnostic.h: what is wrong with a file, a line each: code, place, sentence, hint.
 *
 * A reader of recipes (or user configuration) reports all it finds, not the first; it
 * returns ET_EINVAL and leaves the list to the caller, who prints it. */
#ifndef ETUDE_DIAGNOSTIC_H
#define ETUDE_DIAGNOSTIC_H

#include <stdio.h>

#include "etude/status.h"

#ifdef __cplusplus
extern "C" {
#endif

/* number, code, what it stands for. Numbers are never used twice. */
#define ET_DIAGNOSTIC_MAP(X)                                                           \
    X(1201, READ, "a file cannot be read")                                             \
    X(1202, SYNTAX, "the text is not YAML, UTF-8 or of a size we read")                \
    X(1203, VALUE, "a value has the wrong type or is out of range")                    \
    X(1204, DUPLICATE, "a key is set twice")                                           \
    X(1205, UNKNOWN, "a key or name is not known")                                     \
    X(1206, MISSING, "a key without a default is not set")                             \
    X(1207, CONFLICT, "two settings exclude each other")                               \
    X(1208, PATH, "a path leaves the folder it must stay in")                          \
    X(1209, ENVIRONMENT, "an environment variable is not allowed or not set")          \
    X(1210, SECRET, "a secret would be copied and shown")                              \
    X(1211, LIMIT, "nesting, aliases or nodes exceed a limit")                         \
    X(1212, TAG, "a YAML tag outside the core schema")                                 \
    X(1213, OVERRIDE, "an override on the command line or in ETUDE_SET_*")             \
    X(1214, RESUME, "a difference that a resumed run cannot have")                     \
    X(1215, UNAVAILABLE, "a setting whose function this version lacks")                \
    X(1216, TRUST, "a right that this file cannot give")                               \
    X(3001, CHECKPOINT, "a checkpoint that is not what was saved")                     \
    X(3002, NO_CHECKPOINT, "no checkpoint to go on from")                              \
    X(3003, CHECKPOINT_FORMAT, "a checkpoint of a later format")                       \
    X(4001, PLUGIN_DENIED, "a plugin that the user has not allowed, or could not")     \
    X(4002, PLUGIN_MISSING, "a plugin that is not there")                              \
    X(4003, PLUGIN_BAD, "a file that is no plugin, or one that cannot be used")        \
    X(4004, PLUGIN_ABI, "a plugin built for another etude")                            \
    X(7004, SYSTEM_LIMIT, "the system lets this process have no more of something")

enum et_diagnostic_code {
#define ET_DIAGNOSTIC_ENUM(number, code, what) ET_E_##code = number,
    ET_DIAGNOSTIC_MAP(ET_DIAGNOSTIC_ENUM)
#undef ET_DIAGNOSTIC_ENUM
};

enum { ET_DIAGNOSTICS_MAX = 20 };

/* Where: FILE may be NULL or "" (no place), LINE 0 (the whole file). */
struct et_place {
    const char *file; /* as the user named it */
    int line, column; /* from 1 */
    int order; /* of the file among those read: errors are listed in this order */
};

struct et_diagnostic {
    int code;          /* E-number */
    int order;         /* of the file, see et_place */
    int line, column;  /* from 1; 0 = none */
    char file[160];    /* "" = no place */
    char path[160];    /* "optimizer.lr"; "" = none */
    char message[640]; /* one sentence; what came from outside is made visible */
    char hint[256];    /* what to try; "" = none */
};

/* The caller's to hold; start with {0}. Nothing in it is allocated. */
struct et_diagnostics {
    struct et_diagnostic v[ET_DIAGNOSTICS_MAX]; /* the first of all, in file order */
    int n;                                      /* of V */
    int total;                                  /* found, also those not kept */
};

/* Adds one; PATH and HINT may be NULL. Everything passes et_visible. */
void et_diagnostics_add(struct et_diagnostics *list, int code,
                        const struct et_place *at, const char *path, const char *hint,
                        const char *fmt, ...) ET_PRINTF(6, 7);

/* "error E1203: recipe.yaml:14:9: optimizer.lr: expected ...", then, with a hint,
 * "\n  hint: ...". No newline at the end. Returns BUF. */
const char *et_diagnostic_text(const struct et_diagnostic *d, char *buf, size_t size);
/* {"code":"E1203","file":"recipe.yaml","line":14,"column":9,...}. Returns BUF;
 * ET_DIAGNOSTIC_JSON_BYTES are enough. */
const char *et_diagnostic_json(const struct et_diagnostic *d, char *buf, size_t size);
enum { ET_DIAGNOSTIC_JSON_BYTES = 2 * sizeof(struct et_diagnostic) + 128 };

/* Copies N bytes of TEXT from outside so that they can go to a screen or log: controls
 * (C0, DEL, C1), bidirectional controls and bytes that are not UTF-8 become \x1b or
 * \u202e, and what does not fit, or exceeds 1 KiB, becomes "...". Returns BUF. */
const char *et_visible(char *buf, size_t size, const char *text, size_t n);
enum { ET_VISIBLE_MAX = 1024 };

/* C's fprintf, but for texts (%s), which pass et_visible: how whatever may be from
 * outside, names of files and runs among it, is printed for people. Not for %ls, %Lf,
 * %n, %p. */
void et_print(FILE *f, const char *format, ...) ET_PRINTF(2, 3);

#ifdef __cplusplus
}
#endif
#endif
