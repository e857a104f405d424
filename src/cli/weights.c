/* SPDX-License-Identifier: Apache-2.0 */
/* weights.c: `etude weights`: the tensors of weight files and checkpoints: listed,
 * compared, and converted to another file. */
#include "config.h"

#include <inttypes.h>
#include <jansson.h>
#include <math.h>
#include <string.h>
#include <unistd.h>

#include "cli/cli.h"
#include "core/checkpoint/tensors.h"

enum { SHAPE_TEXT = 192 };

/* The run called NAME, if there is one. */
static et_status
open_run(struct cli *c, const char *name, enum eti_tensors_part part,
         struct eti_tensors *out, int *exit)
{
    json_t *facts = cli_run_find(c, name, exit);
    const char *directory = json_string_value(json_object_get(facts, "directory"));
    et_status status =
        directory ? eti_tensors_open(c->cx, directory, part, out) : ET_ENOENT;
    json_decref(facts);
    return status;
}

/* TEXT is a path, or the name of a run. */
static int
open_tensors(struct cli *c, const char *text, enum eti_tensors_part part,
             struct eti_tensors *out)
{
    int exit = CLI_OK;
    et_status status;
    *out = (struct eti_tensors){0};
    if (access(text, F_OK) != 0 && !strpbrk(text, "/."))
        status = open_run(c, text, part, out, &exit);
    else
        status = eti_tensors_open(c->cx, text, part, out);
    if (status == ET_OK || exit != CLI_OK)
        return exit;
    return cli_fail_status(c, ETI_STAGE_DATA, status);
}

static int64_t
count_values(const struct eti_st_tensor *t)
{
    return (t->end - t->begin) / (int64_t)et_dtype_size(t->dtype);
}

/* Text of files may hold anything. Returns BUF. */
static const char *
visible(const char *text, char buf[ET_VISIBLE_MAX + 1])
{
    et_visible(buf, ET_VISIBLE_MAX + 1, text, strlen(text));
    return buf;
}

/* ---- ls ---- */

static json_t *
shape_json(const struct eti_st_tensor *t)
{
    json_t *shape = json_array();
    for (int i = 0; i < t->ndim; i++)
        json_array_append_new(shape, json_integer(t->shape[i]));
    return shape;
}

static json_t *
tensor_json(const struct eti_st_tensor *t)
{
    return json_pack("{s:s, s:s, s:o, s:I}", "name", t->name, "dtype",
                     et_dtype_name(t->dtype), "shape", shape_json(t), "bytes",
                     (json_int_t)(t->end - t->begin));
}

static const json_t *
metadata_of(const struct eti_weight_file *f)
{
    return json_object_get(f->header.json, "__metadata__");
}

static json_t *
file_json(const struct eti_weight_file *f)
{
    json_t *tensors = json_array(), *metadata = json_object();
    int64_t values = 0;
    for (int64_t i = 0; i < f->header.n; i++) {
        values += count_values(&f->header.v[i]);
        json_array_append_new(tensors, tensor_json(&f->header.v[i]));
    }
    json_object_update(metadata, (json_t *)metadata_of(f));
    return json_pack("{s:o, s:I, s:I, s:I, s:o, s:o}", "path",
                     cli_json_text(f->file.path), "bytes", (json_int_t)f->file.size,
                     "n_tensors", (json_int_t)f->header.n, "n_values",
                     (json_int_t)values, "metadata", metadata, "tensors", tensors);
}

static json_t *
set_json(const struct eti_tensors *s)
{
    const struct eti_manifest *m = &s->manifest;
    json_t *files = json_array();
    for (int i = 0; i < s->n_files; i++)
        json_array_append_new(files, file_json(&s->file[i]));
    json_t *all =
        json_pack("{s:o, s:o}", "path", cli_json_text(s->path), "files", files);
    if (all && s->is_checkpoint)
        json_object_set_new(all, "checkpoint",
                            json_pack("{s:s, s:I, s:I, s:s, s:b}", "label", m->label,
                                      "ep", (json_int_t)m->epoch, "ba",
                                      (json_int_t)m->step, "run", m->run_name,
                                      "weights_only", m->weights_only));
    return all;
}

static void
print_tensor(const struct eti_st_tensor *t)
{
    char name[ET_VISIBLE_MAX + 1], shape[SHAPE_TEXT], bytes[32];
    et_print(stdout, "  %-40s %-4s %-20s %s\n", visible(t->name, name),
             et_dtype_name(t->dtype),
             eti_st_shape_text(t->ndim, t->shape, shape, sizeof shape),
             cli_bytes((double)(t->end - t->begin), bytes, sizeof bytes));
}

static void
print_file(const struct eti_weight_file *f)
{
    char key[ET_VISIBLE_MAX + 1], text[ET_VISIBLE_MAX + 1], bytes[32], count[32];
    const char *name;
    json_t *value;
    int64_t values = 0;
    et_print(stdout, "%s\n", visible(f->file.path, text));
    json_object_foreach((json_t *)metadata_of(f), name, value)
        et_print(stdout, "  %s: %s\n", visible(name, key),
                 visible(json_string_value(value), text));
    for (int64_t i = 0; i < f->header.n; i++) {
        values += count_values(&f->header.v[i]);
        print_tensor(&f->header.v[i]);
    }
    et_print(stdout, "  %" PRId64 " tensors, %s values, %s\n", f->header.n,
             cli_count(values, count, sizeof count),
             cli_bytes((double)f->file.size, bytes, sizeof bytes));
}

static void
print_set(const struct eti_tensors *s)
{
    char label[ET_VISIBLE_MAX + 1], run[ET_VISIBLE_MAX + 1];
    const struct eti_manifest *m = &s->manifest;
    if (s->is_checkpoint)
        et_print(stdout,
                 "checkpoint %s of %s: epoch %" PRId64 ", batch %" PRId64 "%s\n",
                 visible(m->label, label), visible(m->run_name, run), m->epoch, m->step,
                 m->weights_only ? ", weights only" : "");
    for (int i = 0; i < s->n_files; i++)
        print_file(&s->file[i]);
}

static int
list(struct cli *c)
{
    json_t *all = c->opt.json ? json_array() : NULL;
    int code = CLI_OK;
    for (int i = 1; i < c->n_args && code == CLI_OK; i++) {
        struct eti_tensors s;
        code = open_tensors(c, c->arg[i], ETI_TENSORS_ALL, &s);
        if (code == CLI_OK && all)
            json_array_append_new(all, set_json(&s));
        else if (code == CLI_OK)
            print_set(&s);
        eti_tensors_release(&s);
    }
    if (all && code == CLI_OK)
        return cli_print_json(all);
    json_decref(all);
    return code;
}

/* ---- diff ---- */

/* What is found while two sets are gone through. */
struct comparison {
    struct cli *c;
    const struct eti_tensors *a, *b;
    json_t *only[2], *different; /* NULL: lines are printed at once */
    int64_t n_only, n_different, n_equal;
    double max;
};

static bool
same_shape(const struct eti_st_tensor *x, const struct eti_st_tensor *y)
{
    return x->ndim == y->ndim &&
           memcmp(x->shape, y->shape, (size_t)x->ndim * sizeof *x->shape) == 0;
}

static void
found_alone(struct comparison *k, int side, const struct eti_st_tensor *t)
{
    char name[ET_VISIBLE_MAX + 1];
    k->n_only++;
    if (k->only[side])
        json_array_append_new(k->only[side], json_string(t->name));
    else
        et_print(stdout, "only in %s: %s\n", side == 0 ? "the first" : "the second",
                 visible(t->name, name));
}

static json_t *
finite_json(double v)
{
    return isfinite(v) ? json_real(v) : json_null();
}

/* VALUES is NULL where shapes differ. */
static void
found_different(struct comparison *k, const struct eti_st_tensor *x,
                const struct eti_st_tensor *y, const struct eti_difference *values)
{
    char name[ET_VISIBLE_MAX + 1], a[SHAPE_TEXT], b[SHAPE_TEXT];
    k->n_different++;
    if (k->different) {
        json_t *one = json_pack("{s:s, s:[s,s], s:[o,o]}", "name", x->name, "dtype",
                                et_dtype_name(x->dtype), et_dtype_name(y->dtype),
                                "shape", shape_json(x), shape_json(y));
        if (values)
            json_object_update_new(
                one,
                json_pack("{s:I, s:I, s:o, s:o}", "values", (json_int_t)values->count,
                          "different", (json_int_t)values->different, "max",
                          finite_json(values->max), "rms", finite_json(values->rms)));
        json_array_append_new(k->different, one);
        return;
    }
    visible(x->name, name);
    eti_st_shape_text(x->ndim, x->shape, a, sizeof a);
    eti_st_shape_text(y->ndim, y->shape, b, sizeof b);
    if (x->dtype != y->dtype || !values)
        et_print(stdout, "%s: %s%s, %s%s\n", name, et_dtype_name(x->dtype), a,
                 et_dtype_name(y->dtype), b);
    if (values)
        et_print(stdout,
                 "%s: %" PRId64 " of %" PRId64 " values differ, max %.6g, rms %.6g\n",
                 name, values->different, values->count, values->max, values->rms);
}

static et_status
compare_pair(struct comparison *k, const struct eti_tensor *a,
             const struct eti_tensor *b)
{
    struct eti_difference values;
    if (!same_shape(a->t, b->t)) {
        found_different(k, a->t, b->t, NULL);
        return ET_OK;
    }
    ET_TRY(eti_tensor_compare(a, b, &values));
    k->max = fmax(k->max, values.max);
    if (values.different > 0 || a->t->dtype != b->t->dtype)
        found_different(k, a->t, b->t, &values);
    else
        k->n_equal++;
    return ET_OK;
}

/* Both are sorted by name. */
static et_status
compare_sets(struct comparison *k)
{
    int64_t i = 0, j = 0;
    while (i < k->a->n || j < k->b->n) {
        int order = i == k->a->n   ? 1
                    : j == k->b->n ? -1
                                   : strcmp(k->a->v[i].t->name, k->b->v[j].t->name);
        if (order < 0)
            found_alone(k, 0, k->a->v[i++].t);
        else if (order > 0)
            found_alone(k, 1, k->b->v[j++].t);
        else
            ET_TRY(compare_pair(k, &k->a->v[i++], &k->b->v[j++]));
    }
    return ET_OK;
}

static int
print_comparison(struct comparison *k)
{
    bool equal = k->n_only == 0 && k->n_different == 0;
    int code = CLI_OK;
    if (k->different)
        code = cli_print_json(json_pack(
            "{s:o, s:o, s:b, s:I, s:O, s:O, s:O}", "first", cli_json_text(k->a->path),
            "second", cli_json_text(k->b->path), "equal", equal, "n_equal",
            (json_int_t)k->n_equal, "only_in_first", k->only[0], "only_in_second",
            k->only[1], "different", k->different));
    else if (!k->c->opt.quiet)
        printf("%" PRId64 " tensors are equal, %" PRId64 " differ (max %.6g), %" PRId64
               " are in one alone\n",
               k->n_equal, k->n_different, k->max, k->n_only);
    if (code != CLI_OK)
        return code;
    return equal ? CLI_OK : CLI_DIFFERENT;
}

static int
diff_sets(struct cli *c, const struct eti_tensors *a, const struct eti_tensors *b)
{
    struct comparison k = {.c = c, .a = a, .b = b};
    if (c->opt.json) {
        k.only[0] = json_array();
        k.only[1] = json_array();
        k.different = json_array();
    }
    et_status status = compare_sets(&k);
    int code = status == ET_OK ? print_comparison(&k)
                               : cli_fail_status(c, ETI_STAGE_DATA, status);
    json_decref(k.only[0]);
    json_decref(k.only[1]);
    json_decref(k.different);
    return code;
}

static int
diff(struct cli *c)
{
    struct eti_tensors a, b = {0};
    enum eti_tensors_part part = c->opt.all ? ETI_TENSORS_ALL : ETI_TENSORS_MODEL;
    int code = open_tensors(c, c->arg[1], part, &a);
    if (code == CLI_OK)
        code = open_tensors(c, c->arg[2], part, &b);
    if (code == CLI_OK)
        code = diff_sets(c, &a, &b);
    eti_tensors_release(&a);
    eti_tensors_release(&b);
    return code;
}

/* ---- convert ---- */

static enum et_dtype
wanted_dtype(struct cli *c)
{
    static const enum et_dtype dtypes[] = {ET_F32, ET_F16, ET_BF16}; /* as --dtype's */
    return c->opt.dtype < 0 ? ET_NONE : dtypes[c->opt.dtype];
}

static int
print_converted(struct cli *c, const struct eti_converted *done)
{
    char bytes[32];
    if (done->overflowed > 0)
        et_report(c->cx, ET_LOG_WARN,
                  "%" PRId64 " values are beyond what %s holds and became infinite",
                  done->overflowed, et_dtype_name(wanted_dtype(c)));
    if (c->opt.json)
        return cli_print_json(json_pack(
            "{s:o, s:I, s:I, s:I}", "path", cli_json_text(c->opt.output), "n_tensors",
            (json_int_t)done->tensors, "bytes", (json_int_t)done->bytes, "overflowed",
            (json_int_t)done->overflowed));
    if (!c->opt.quiet)
        et_print(stdout, "%s: %" PRId64 " tensors, %s\n", c->opt.output, done->tensors,
                 cli_bytes((double)done->bytes, bytes, sizeof bytes));
    return CLI_OK;
}

/* May PATH be the name of a safetensors file? One without an ending may. */
static bool
names_safetensors(const char *path)
{
    const char *slash = strrchr(path, '/'), *name = slash ? slash + 1 : path;
    const char *dot = strrchr(name, '.');
    return !dot || dot == name || strcmp(dot, ".safetensors") == 0;
}

static int
convert(struct cli *c)
{
    struct eti_tensors s;
    struct eti_converted done;
    char name[ET_VISIBLE_MAX + 1];
    if (!c->opt.output)
        return cli_fail(c, CLI_E_OPERAND, NULL, "weights convert needs -o FILE");
    if (!names_safetensors(c->opt.output))
        return cli_fail(c, CLI_E_OPTION,
                        "a name that ends in .safetensors, or has no ending",
                        "weights convert writes safetensors, no other format: %s",
                        visible(c->opt.output, name));
    int code = open_tensors(c, c->arg[1], ETI_TENSORS_MODEL, &s);
    if (code == CLI_OK) {
        et_status status =
            eti_tensors_convert(&s, wanted_dtype(c), c->opt.output, &done);
        enum eti_stage stage = status == ET_EFORMAT ? ETI_STAGE_DATA : ETI_STAGE_OUTPUT;
        code = status == ET_OK ? print_converted(c, &done)
                               : cli_fail_status(c, stage, status);
    }
    eti_tensors_release(&s);
    return code;
}

/* ---- which ---- */

int
cli_weights(struct cli *c)
{
    static const struct {
        const char *name;
        int least, most; /* operands behind it; most 0: any number */
        bool all, writes;
        int (*run)(struct cli *c);
    } actions[] = {
        {"ls", 1, 0, false, false, list},
        {"diff", 2, 2, true, false, diff},
        {"convert", 1, 1, false, true, convert},
        {"export", 1, 1, false, true, cli_weights_export},
    };
    const char *what = c->n_args > 0 ? c->arg[0] : "";
    int n = c->n_args - 1;
    for (size_t i = 0; i < sizeof actions / sizeof *actions; i++) {
        if (strcmp(what, actions[i].name) != 0)
            continue;
        if (n < actions[i].least || (actions[i].most && n > actions[i].most))
            break;
        if (c->opt.all && !actions[i].all)
            return cli_fail(c, CLI_E_OPTION, NULL,
                            "--all does not apply to 'weights %s'", what);
        if ((c->opt.output || c->opt.dtype >= 0) && !actions[i].writes)
            return cli_fail(c, CLI_E_OPTION, NULL,
                            "--%s does not apply to 'weights %s'",
                            c->opt.output ? "output" : "dtype", what);
        if ((c->opt.form >= 0 && actions[i].run != cli_weights_export) ||
            (c->opt.dtype >= 0 && actions[i].run == cli_weights_export))
            return cli_fail(c, CLI_E_OPTION, NULL,
                            "--%s does not apply to 'weights %s'",
                            c->opt.form >= 0 ? "as" : "dtype", what);
        return actions[i].run(c);
    }
    return cli_fail(c, CLI_E_OPERAND,
                    "a FILE is a safetensors file, a checkpoint or a run",
                    "weights needs one of: ls FILE..., diff FILE FILE, convert FILE "
                    "-o FILE, export RUN --as FORM -o PATH");
}
