/* SPDX-License-Identifier: Apache-2.0 */
/* option.h: the option table, the only place an option exists.
 *
 * The recipe parser, did-you-mean, help texts, man pages, `etude algorithms --json` and
 * the checkpoint fingerprint all read it. A component's options are a plain struct;
 * each row says where in it a value goes:
 *
 *     struct my_options {
 *         double alpha;
 *     };
 *     static const struct et_option table[] = {
 *         {.name = "alpha", .type = ET_OPT_FLOAT, .def = "0.2", .max = 1,
 *          .offset = offsetof(struct my_options, alpha), .help = "how much is mixed"},
 *         {.name = NULL},
 *     };
 *
 * What makes a component (et_dataset_open, et_model_new, et_optimizer_new,
 * et_algorithm_new, et_callback_new, et_metric_new) copies the options it is given,
 * with all they own: the caller's may be changed or released as soon as it returns. */
#ifndef ETUDE_OPTION_H
#define ETUDE_OPTION_H

#include <stdint.h>

#include "etude/status.h"
#include "etude/time.h"

#ifdef __cplusplus
extern "C" {
#endif

/* type, value, C type of the field, word in messages */
#define ET_OPTION_TYPE_MAP(X)                                                          \
    X(INT, 0, int64_t, "integer")                                                      \
    X(FLOAT, 1, double, "number")                                                      \
    X(BOOL, 2, bool, "true or false")                                                  \
    X(TEXT, 3, char *, "text")                                                         \
    X(PATH, 4, char *, "path")                                                         \
    X(ENUM, 5, int, "one of a list")                                                   \
    X(TIME, 6, struct et_time, "time such as 10ep or 500ba")                           \
    X(TIMES, 7, struct et_times, "list of times")                                      \
    X(SECONDS, 8, double, "duration such as 25s or 5m")                                \
    X(SIZE, 9, int64_t, "size such as 64K or 1Gi")                                     \
    X(FLOATS, 10, struct et_floats, "list of numbers")                                 \
    X(TEXTS, 11, struct et_texts, "list of texts")                                     \
    X(NODE, 12, const struct et_value *, "mapping or list")                            \
    X(TABLE, 13, struct with a table of its own, "mapping")                            \
    X(PART, 14, struct et_part, "component")                                           \
    X(PARTS, 15, struct et_parts, "components")

enum et_option_type {
#define ET_OPTION_TYPE_ENUM(code, number, ctype, word) ET_OPT_##code = number,
    ET_OPTION_TYPE_MAP(ET_OPTION_TYPE_ENUM)
#undef ET_OPTION_TYPE_ENUM
        ET_OPT_COUNT
};

struct et_value; /* a parsed YAML value; the recipe's own */

/* Lists: N values, owned by the options struct they stand in. */
struct et_floats {
    double *v;
    int n;
};
struct et_texts {
    char **v; /* each owned too */
    int n;
};
struct et_times {
    struct et_time *v;
    int n;
};

/* What a recipe can name: each kind has a registry (recipe.h). code, value, word */
#define ET_KIND_MAP(X)                                                                 \
    X(MODEL, 0, "model")                                                               \
    X(DATASET, 1, "dataset")                                                           \
    X(TRANSFORM, 2, "transform")                                                       \
    X(OPTIMIZER, 3, "optimizer")                                                       \
    X(GROUP, 4, "parameter group")                                                     \
    X(SCHEDULER, 5, "scheduler")                                                       \
    X(ALGORITHM, 6, "algorithm")                                                       \
    X(CALLBACK, 7, "callback")                                                         \
    X(LOGGER, 8, "logger")                                                             \
    X(METRIC, 9, "metric")                                                             \
    X(LOSS, 10, "loss")                                                                \
    X(LAYER, 11, "layer")

enum et_kind {
#define ET_KIND_ENUM(code, number, word) ET_KIND_##code = number,
    ET_KIND_MAP(ET_KIND_ENUM)
#undef ET_KIND_ENUM
        ET_KIND_COUNT
};

/* A component with its options filled in: `optimizer: {name: adamw, lr: 1e-3}`. Both
 * structs belong to the part; a part that was not given has no component. */
struct et_part {
    const struct et_component *component; /* NULL: none */
    void *options;                /* component->options_size bytes; NULL if that is 0 */
    void *extra;                  /* the keys of the row's SUB; NULL if it has none */
    bool off;                     /* `ema: false`: named, not wanted */
    const struct et_value *value; /* where it was written; NULL: a default */
};
struct et_parts {
    struct et_part *v; /* in the user's order */
    int n;
};

enum {
    ET_OPT_REQUIRED = 1,   /* no default; must be given */
    ET_OPT_OPTIONAL = 2,   /* null is allowed and means "unset": see the field's row */
    ET_OPT_MAY_CHANGE = 4, /* may be set while a run is under way */
    ET_OPT_MIN_OPEN = 8,   /* min itself is not allowed */
    ET_OPT_MAX_OPEN = 16,  /* max itself is not allowed */
    ET_OPT_FALSE = 32,     /* TABLE: `false` sets the bool its struct begins with; def =
                              "false" begins with that, and an empty value unsets it */
    ET_OPT_BY_NAME = 64,   /* PARTS: an ordered mapping from name to options */
    ET_OPT_KEEP = 128,     /* PARTS: the default's stay on unless turned off by name */
    ET_OPT_OUTPUT = 256, /* TEXT: a file of the run directory, which it may not leave */
    ET_OPT_RESUME = 512, /* may differ when a run is resumed */
    ET_OPT_LATER = 2048, /* not part of the digest of a recipe while it is empty or, as
                            DEF spells it, the default, because runs were saved before
                            the key was there */
    ET_OPT_BRIEF = 1024, /* TABLE: a value that is no mapping is that of its first row;
                            so it is written while the other rows are as their defaults,
                            which have to be spelled as they are printed */
    ET_OPT_ITEMS = 4096, /* NODE: a list of components of KIND, each a name, or a name
                            with its options; it is checked, and kept as written */
};

struct et_option {
    const char *name; /* as in the recipe */
    enum et_option_type type;
    size_t offset;              /* offsetof() in the options struct */
    const char *def;            /* default, as YAML text; NULL: required, or unset */
    double min, max;            /* inclusive unless flagged; both 0 = no bound, and a
                                   max below min = none above */
    const char *const *choices; /* ENUM: NULL-terminated; the value is the index.
                                   Other types: words that mean "unset", such as auto */
    unsigned units;    /* TIME: bit mask of 1 << et_time_unit allowed; 0 = any */
    unsigned flags;    /* ET_OPT_* flags above */
    const char *unit;  /* for people: "pixels"; may be NULL */
    const char *help;  /* one sentence, lower case, no full stop */
    enum et_kind kind; /* PART, PARTS, ET_OPT_ITEMS: which registry */
    const struct et_option *sub; /* TABLE: its table. PART, PARTS: keys that may stand
                                    beside the component's own; NULL = none */
    size_t sub_size;             /* bytes of the struct SUB describes */
    void (*prepare)(void *options); /* PART, PARTS: changes a component's defaults
                                       before the user's values; NODE: changes the
                                       field (optional) */
    const char
        *also; /* other names for it, with blanks between: what PyTorch and others
                         call it. "!bias": its opposite, of a BOOL; "~eta_min": what is
                         alike and not the same, only suggested */
    const void *reserved[2]; /* NULL: room for later versions */
};

/* What every component (algorithm, model, dataset, ...) says of itself.
 * First member of each kind's descriptor, so that a list of one is a list of all. */
struct et_component {
    /* Bytes of the class that this begins, where it was compiled: ET_CLASS(optimizer).
     * What later versions add at a class's end it does not have. A plugin's classes say
     * it; 0: all that there is. */
    size_t class_size;
    const char *name;                /* identifier in recipes: "label_smoothing" */
    const char *class_name;          /* in metric keys: "LabelSmoothing" */
    const char *summary;             /* one line */
    const char *source;              /* paper, or where the behaviour comes from */
    const char *applies_to;          /* "vision", "text", "any" */
    const struct et_option *options; /* ends with a NULL name; NULL: it has none */
    size_t options_size;             /* of the options struct */
    const void *reserved[2];         /* NULL: room for later versions */
};
/* .info = {ET_CLASS(optimizer), .name = ...} of a struct et_optimizer_class. */
#define ET_CLASS(kind) .class_size = sizeof(struct et_##kind##_class)

/* An unset TIME has unit ET_TIME_UNIT_COUNT, an unset FLOAT or SECONDS is NaN, an unset
 * INT or SIZE is ET_INT_UNSET, an unset ENUM -1, an unset text, list or node is NULL or
 * empty. */
#define ET_INT_UNSET  INT64_MIN
#define ET_TIME_UNSET ((struct et_time){0, ET_TIME_UNIT_COUNT})

/* Fills OPTIONS (zeroed by the caller) with the table's defaults. */
ET_NODISCARD et_status et_options_init(struct et_ctx *cx, const struct et_option *table,
                                       void *options);
/* Frees what the fields of OPTIONS own; the struct itself is the caller's. */
void et_options_release(const struct et_option *table, void *options);
/* TO becomes like FROM, both SIZE bytes, whatever was in it: it owns its own texts,
 * lists, parts and trees, at any depth (the trees of a recipe stay the recipe's). What
 * no row of TABLE is about is copied as it stands. ENOMEM: TO owns nothing. */
ET_NODISCARD et_status et_options_copy(struct et_ctx *cx, const struct et_option *table,
                                       size_t size, const void *from, void *to);
/* Sets one option from YAML text: et_options_set(cx, table, &o, "alpha", "0.2"). EINVAL
 * with a sentence for an unknown name (and a suggestion), a wrong type or range; the
 * old value then stands. */
ET_NODISCARD et_status et_options_set(struct et_ctx *cx, const struct et_option *table,
                                      void *options, const char *name,
                                      const char *text);

/* The options of COMPONENT in one call: its defaults, then SET, which is name, text,
 * name, text, ..., NULL (SET NULL: the defaults alone). The caller frees *OUT with
 * et_options_free. A component without options has none: *OUT is NULL. EINVAL as
 * above. */
ET_NODISCARD et_status et_options_new(struct et_ctx *cx,
                                      const struct et_component *component,
                                      const char *const *set, void **out);
/* Frees *OPTIONS, of COMPONENT, and sets it to NULL; NULL: nothing to do. */
void et_options_free(const struct et_component *component, void **options);

/* The value of the option ROW in OPTIONS as YAML text on one line, which et_options_set
 * reads back to the same value: "0.1", "[0.9, 0.95]", "10ep", "null" when unset.
 * Caller frees with et_free. */
ET_NODISCARD et_status et_option_text(struct et_ctx *cx, const struct et_option *row,
                                      const void *options, char **out);
/* What may be written there, for help and messages: "number > 0", "one of auto, cpu".
 * Returns BUF. */
const char *et_option_expects(const struct et_option *row, char *buf, size_t size);
/* Its other names for people, "in_channels" or "bias, its opposite", commas between; ""
 * where it has none. Returns BUF. */
const char *et_option_other_names(const struct et_option *row, char *buf, size_t size);
/* The name of N in NAMES nearest to WORD (Damerau-Levenshtein); if none is near
 * enough to be what was meant, the only one of which WORD is a part, as classes of
 * num_classes; or NULL. */
const char *et_nearest(const char *word, const char *const *names, int n);

#ifdef __cplusplus
}
#endif
#endif
