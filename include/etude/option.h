/* option.h: the option table, the only place an option exists.
 *
 * The recipe parser, did-you-mean, help texts, man pages, `etude algorithms --json` and
 * the checkpoint fingerprint all read it. A component's options are a plain struct; each
 * row says where in it a value goes. */
#ifndef ETUDE_OPTION_H
#define ETUDE_OPTION_H

#include <stdint.h>

#include "etude/status.h"
#include "etude/time.h"

#ifdef __cplusplus
extern "C" {
#endif

/* type, C type of the field, word in messages */
#define ET_OPTION_TYPE_MAP(X)                                                  \
    X(INT, int64_t, "integer")                                                 \
    X(FLOAT, double, "number")                                                 \
    X(BOOL, bool, "true or false")                                             \
    X(TEXT, char *, "text")                                                    \
    X(PATH, char *, "path")                                                    \
    X(ENUM, int, "one of a list")                                              \
    X(TIME, struct et_time, "time such as 10ep or 500ba")                      \
    X(TIMES, struct et_times, "list of times")                                 \
    X(SECONDS, double, "duration such as 25s or 5m")                           \
    X(SIZE, int64_t, "size such as 64K or 1Gi")                                \
    X(FLOATS, struct et_floats, "list of numbers")                             \
    X(TEXTS, struct et_texts, "list of texts")                                 \
    X(NODE, const struct et_value *, "mapping or list")

enum et_option_type {
#define ET_OPTION_TYPE_ENUM(code, ctype, word) ET_OPT_##code,
    ET_OPTION_TYPE_MAP(ET_OPTION_TYPE_ENUM)
#undef ET_OPTION_TYPE_ENUM
    ET_OPT_COUNT
};

struct et_value; /* a parsed YAML value: src/core/recipe/value.h */

struct et_floats {
    double *v;
    int n;
};
struct et_texts {
    char **v;
    int n;
};
struct et_times {
    struct et_time *v;
    int n;
};

enum {
    ET_OPT_REQUIRED = 1,   /* no default; must be given */
    ET_OPT_OPTIONAL = 2,   /* null is allowed and means "unset": see the field's row */
    ET_OPT_MAY_CHANGE = 4, /* may be set while a run is under way */
    ET_OPT_MIN_OPEN = 8,   /* min itself is not allowed */
    ET_OPT_MAX_OPEN = 16,  /* max itself is not allowed */
};

struct et_option {
    const char *name;           /* as in the recipe */
    enum et_option_type type;
    size_t offset;              /* offsetof() in the options struct */
    const char *def;            /* default, as YAML text; NULL: required, or unset */
    double min, max;            /* inclusive unless flagged; both 0 = no bound */
    const char *const *choices; /* ENUM: NULL-terminated; the value is the index */
    unsigned units;             /* TIME: bit mask of 1 << et_time_unit allowed; 0 = any */
    unsigned flags;             /* ET_OPT_* flags above */
    const char *unit;           /* for people: "pixels"; may be NULL */
    const char *help;           /* one sentence, lower case, no full stop */
};

/* What every component (algorithm, model, dataset, ...) says of itself.
 * The first member of each kind's descriptor, so that a list of one is a list of all. */
struct et_component {
    const char *name;       /* identifier in recipes: "label_smoothing" */
    const char *class_name; /* in metric keys: "LabelSmoothing" */
    const char *summary;    /* one line */
    const char *source;     /* paper, or where the behaviour comes from */
    const char *applies_to; /* "vision", "text", "any" */
    const struct et_option *options; /* ends with a row whose name is NULL; may be NULL */
    size_t options_size;    /* of the options struct */
};

/* An unset TIME has unit ET_TIME_UNIT_COUNT, an unset FLOAT is NaN, an unset INT is
 * INT64_MIN, an unset text, list or node is NULL / empty. */
#define ET_TIME_UNSET ((struct et_time){0, ET_TIME_UNIT_COUNT})

/* Fills OPTIONS (zeroed by the caller) with the table's defaults. */
ET_NODISCARD et_status et_options_init(struct et_ctx *cx, const struct et_option *table,
                                       void *options);
/* Frees what the fields of OPTIONS own; the struct itself is the caller's. */
void et_options_release(const struct et_option *table, void *options);
/* Sets one option from YAML text: et_options_set(cx, table, &o, "alpha", "0.2"). EINVAL
 * with a sentence for an unknown name (and a suggestion), a wrong type or range. */
ET_NODISCARD et_status et_options_set(struct et_ctx *cx, const struct et_option *table,
                                      void *options, const char *name, const char *text);

#ifdef __cplusplus
}
#endif
#endif
