/* SPDX-License-Identifier: Apache-2.0 */
/* rig.c: see rig.h. */
#include "t/unit/rig.h"

#include <stdlib.h>
#include <string.h>

#include "t/tap.h"

static void
must(struct et_ctx *cx, et_status status)
{
    if (status != ET_OK)
        bail("%s: %s", et_status_name(status), et_error_get(cx)->message);
}

/* golden.py's unit(): number I of STREAM, in [0, 1). */
static double
unit(uint32_t stream, uint32_t i)
{
    uint32_t x = i * 0x9E3779B1u + stream * 0x85EBCA77u;
    x = (x ^ x >> 16) * 0x21F0AAADu;
    x = (x ^ x >> 15) * 0x735A2D97u;
    return (x ^ x >> 15) * 0x1p-32;
}

void
rig_values(uint32_t stream, int64_t n, float *out)
{
    for (int64_t i = 0; i < n; i++)
        out[i] = (float)(2 * unit(stream, (uint32_t)i) - 1);
}

struct et_param_spec
rig_spec(const char *name, enum et_param_role role, int ndim, const int64_t *shape)
{
    struct et_param_spec s = {.name = name, .role = role};
    et_desc_init(&s.desc, ET_F32, ndim, shape,
                 ndim == 4 ? ET_CHANNELS_LAST : ET_ROW_MAJOR);
    return s;
}

void
rig_begin(struct rig *r, struct et_ctx *cx, struct et_device *dev, const char *name,
          const char *text, const struct et_param_spec *specs, int n)
{
    const struct et_optimizer_class *class = et_optimizer_find(name);
    if (!class)
        bail("no optimizer is named %s", name);
    rig_begin_class(r, cx, dev, class, text, specs, n);
}

void
rig_begin_class(struct rig *r, struct et_ctx *cx, struct et_device *dev,
                const struct et_optimizer_class *class, const char *text,
                const struct et_param_spec *specs, int n)
{
    char line[256], *save = NULL;
    snprintf(line, sizeof line, "%s", text);
    *r = (struct rig){.cx = cx, .dev = dev, .class = class};
    const struct et_option *options = r->class->info.options;
    must(cx, et_alloc(cx, r->class->info.options_size, &r->options));
    must(cx, et_options_init(cx, options, r->options));
    for (char *item = strtok_r(line, " ", &save); item;
         item = strtok_r(NULL, " ", &save)) {
        char *value = strchr(item, '=');
        *value++ = '\0';
        must(cx, et_options_set(cx, options, r->options, item, value));
    }
    must(cx, et_param_space_new(cx, dev, specs, n, &r->space));
    must(cx, et_optimizer_new(cx, r->class, r->options, r->space, &r->opt));
    must(cx, et_graph_new(cx, dev, &r->g));
    for (int i = 0; i < n; i++) {
        float v[RIG_MOST];
        struct et_tensor *t;
        rig_values((uint32_t)i, r->space->slot[i].count, v);
        must(cx, et_param_space_view(cx, r->space, -1, i, &t));
        must(cx, et_tensor_write(cx, t, v, et_desc_bytes(&t->desc)));
        et_tensor_free(&t);
    }
}

void
rig_step(struct rig *r, float (*grad)[RIG_MOST])
{
    struct et_tensor *leaf[8] = {NULL};
    for (int i = 0; i < r->space->n; i++) {
        const struct et_desc *d = &r->space->slot[i].desc;
        must(r->cx, et_tensor_new(r->cx, r->dev, ET_F32, d->ndim, d->shape,
                                  ET_ROW_MAJOR, "grad", &leaf[i]));
        must(r->cx, et_tensor_write(r->cx, leaf[i], grad[i], et_desc_bytes(d)));
    }
    struct et_tensor *flat = et_param_space_pack(r->g, r->space, leaf);
    must(r->cx, et_optimizer_update(r->g, r->opt, flat, NULL, NULL));
    must(r->cx, et_eval(r->g, NULL, 0));
    et_optimizer_done(r->opt, false);
    et_graph_reset(r->g);
    for (int i = 0; i < r->space->n; i++)
        et_tensor_free(&leaf[i]);
}

void
rig_get(const struct rig *r, int i, float *out)
{
    struct et_tensor *t;
    must(r->cx, et_param_space_view(r->cx, r->space, -1, i, &t));
    must(r->cx, et_tensor_read(r->cx, t, out, et_desc_bytes(&t->desc)));
    et_tensor_free(&t);
}

void
rig_end(struct rig *r)
{
    et_graph_free(&r->g);
    et_optimizer_free(&r->opt);
    et_param_space_free(&r->space);
    et_options_release(r->class->info.options, r->options);
    et_free(r->cx, r->options);
}

FILE *
rig_golden(const char *name)
{
    const char *root = getenv("ET_SRCDIR");
    char path[4096];
    snprintf(path, sizeof path, "%s/t/golden/%s", root ? root : ".", name);
    FILE *f = fopen(path, "r");
    if (!f)
        bail("cannot open %s", path);
    return f;
}

FILE *
rig_open_case(const char *name, const char *text)
{
    static char line[1 << 16];
    char found[128];
    FILE *f = rig_golden(name);
    while (fgets(line, sizeof line, f))
        if (rig_word(line, "case", found) && strcmp(found, text) == 0)
            return f;
    bail("t/golden/%s has no case %s", name, text);
    return f;
}

const char *
rig_word(const char *line, const char *key, char name[128])
{
    size_t n = strlen(key);
    if (strncmp(line, key, n) != 0 || line[n] != ' ')
        return NULL;
    size_t length = strcspn(line + n + 1, " \n");
    snprintf(name, 128, "%.*s", (int)length, line + n + 1);
    return line + n + 1 + length;
}

int
rig_cases(const char *name, void (*each)(FILE *f, const char *text))
{
    char line[256];
    FILE *f = rig_golden(name);
    int cases = 0;
    while (fgets(line, sizeof line, f))
        if (strncmp(line, "case ", 5) == 0) {
            line[strcspn(line, "\n")] = '\0';
            each(f, line + 5);
            cases++;
        }
    fclose(f);
    return cases;
}

/* The line "NAME v v v ..." of N numbers, which is next in F. */
static void
next_line(FILE *f, const char *name, int64_t n, float *out)
{
    char word[32];
    if (fscanf(f, "%31s", word) != 1 || strcmp(word, name) != 0)
        bail("golden numbers: expected %s, got '%s'", name, word);
    for (int64_t i = 0; i < n; i++)
        if (fscanf(f, "%f", &out[i]) != 1)
            bail("golden numbers: %s has fewer than %d", name, (int)n);
}

void
rig_compare(const struct rig *r, const struct et_param_spec *specs, FILE *f,
            double tolerance, const char *text)
{
    for (int i = 0; i < r->space->n; i++) {
        int64_t count = r->space->slot[i].count;
        float got[RIG_MOST], want[RIG_MOST];
        next_line(f, specs[i].name, count, want);
        rig_get(r, i, got);
        is_near_array(got, want, count, tolerance, "%s: %s is as it should be", text,
                      specs[i].name);
    }
}
