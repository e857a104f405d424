/* SPDX-License-Identifier: Apache-2.0 */
/* value.h: a parsed YAML value: what was written, and where.
 *
 * Built from libfyaml's event stream, never from its documents: resolving those expands
 * aliases without bound, and their duplicate-key check is quadratic (ENGINE.md 6).
 * Every value lies in the arena it was read into. */
#ifndef ETI_VALUE_H
#define ETI_VALUE_H

#include <stdint.h>

#include "core/base/arena.h"
#include "etude/diagnostic.h"

enum et_value_type {
    ET_VALUE_NULL,
    ET_VALUE_BOOL,
    ET_VALUE_INT,
    ET_VALUE_FLOAT,
    ET_VALUE_STRING,
    ET_VALUE_LIST,
    ET_VALUE_MAP,
};

/* Who set a value; later ones win. code, words */
#define ETI_ORIGIN_MAP(X)                                                              \
    X(DEFAULT, "default")                                                              \
    X(INCLUDE, "include")                                                              \
    X(RECIPE, "recipe")                                                                \
    X(ENVIRONMENT, "environment")                                                      \
    X(COMMAND_LINE, "command line")

enum eti_origin {
#define ETI_ORIGIN_ENUM(code, words) ETI_ORIGIN_##code,
    ETI_ORIGIN_MAP(ETI_ORIGIN_ENUM)
#undef ETI_ORIGIN_ENUM
};

/* A text that values come from. */
struct eti_source {
    enum eti_origin origin;
    int order;        /* among the texts of one load: diagnostics follow it */
    const char *name; /* file as the user named it; the variable; the argument */
};

struct et_value {
    enum et_value_type type;
    bool is_quoted;                  /* a scalar in quotes, or tagged !!str */
    int line, column;                /* of the value, from 1 */
    size_t start, end;               /* bytes of the text; END is one past the last */
    const struct eti_source *source; /* the text */
    const char *text; /* scalars: as written, quotes and escapes undone */
    union {
        bool b;
        int64_t i;
        double f; /* FLOAT; an INT's value is in I alone */
    };
    const char *key;               /* in a mapping: its key; NULL in a list */
    int key_line, key_column;      /* of the key, from 1 */
    size_t key_start;              /* its first byte of the text, a quote included */
    struct et_value *first, *next; /* children, and the next of the parent's children */
    int n;                         /* children */
    struct eti_arena *owned;       /* only in a text read by eti_value_read */
};

struct eti_yaml_limits {
    size_t bytes; /* of the text */
    int depth;    /* of nesting */
    int aliases;  /* in the text */
    int nodes;    /* keys and values, after expanding them */
};
extern const struct eti_yaml_limits
    eti_yaml_limits; /* of recipes: RELIABILITY.md 7.5 */

/* Reads N bytes of YAML into ARENA: *OUT is the one document's value, NULL-typed where
 * the text is empty. SOURCE is kept by reference. What is wrong goes to ERRORS, and
 * *OUT is NULL where that leaves no tree (ET_OK all the same); a duplicate key alone
 * does leave one. ENOMEM is the only status besides. A pure function of text and
 * limits. */
ET_NODISCARD et_status eti_yaml_parse(struct eti_arena *arena, const char *text,
                                      size_t n, const struct eti_source *source,
                                      const struct eti_yaml_limits *limits,
                                      struct et_diagnostics *errors,
                                      struct et_value **out);

/* Gives V type and number by the core schema's rules for plain text. */
void eti_value_resolve_plain(struct et_value *v);

/* The child of mapping V with KEY; NULL if V is no mapping or has none. */
struct et_value *eti_value_get(const struct et_value *v, const char *key);
/* The child at INDEX; NULL behind the last. */
struct et_value *eti_value_at(const struct et_value *v, int index);
/* The number of an INT or FLOAT. */
double eti_value_number(const struct et_value *v);
struct et_place eti_value_place(const struct et_value *v);
struct et_place eti_value_key_place(const struct et_value *v);
/* "a mapping", "\"fast\"", "null": what messages quote. Returns BUF. */
const char *eti_value_quote(const struct et_value *v, char *buf, size_t size);

/* ---- changing a tree ---- */

/* A new scalar (TEXT borrowed), list or mapping; NULL when memory is out. */
struct et_value *eti_value_new(struct eti_arena *arena, enum et_value_type type,
                               const struct eti_source *source, const char *text);
/* A copy with all children; NULL when memory is out. Counts itself down from *BUDGET
 * and stops (a partial copy) where that would pass 0; NULL = no budget. */
struct et_value *eti_value_copy(struct eti_arena *arena, const struct et_value *v,
                                int *budget);
/* Appends CHILD, under KEY (borrowed) in a mapping. */
void eti_value_append(struct et_value *parent, const char *key, struct et_value *child);
/* Puts NOW in the place of OLD, which keeps its key. */
void eti_value_replace(struct et_value *parent, struct et_value *old,
                       struct et_value *now);
/* Makes V what NOW is; it keeps its key and its place among the children. */
void eti_value_become(struct et_value *v, const struct et_value *now);
void eti_value_remove(struct et_value *parent, const struct et_value *child);
char *eti_arena_text(struct eti_arena *arena, const char *text, size_t n);

#endif
