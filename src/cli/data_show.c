/* SPDX-License-Identifier: Apache-2.0 */
/* data_show.c: `etude data show`: samples as they reach the model.
 *
 * What is shown comes out of a loader, so that it is what training sees: after all
 * transforms, in the order of the first epoch. Pictures are drawn with the bytes whose
 * normalised values they have; the colours of masks lie over them. */
#include "config.h"

#include <jansson.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include "cli/data.h"
#include "cli/picture.h"
#include "core/base/utf8.h"
#include "core/data/loader_impl.h"

enum {
    SAMPLES = 8,     /* that are shown if no limit is given */
    TILE = 18,       /* columns of a picture */
    GAP = 2,         /* between two */
    WIDTH = 80,      /* of what is no terminal */
    NUMBERS = 12,    /* of a field that are printed */
    TOKENS = 256,    /* likewise */
    JSON_MOST = 4096 /* elements of a field that JSON has */
};

struct shown {
    struct cli *c;
    struct et_loader *loader;
    const struct et_batch *batch;
    struct et_loader_info info;
    const char *const *class_names;
    int64_t n; /* samples of the batch to show */
};

static const struct et_field *
field_of(const struct shown *s, int i)
{
    return &s->info.field[i];
}

/* The place of the first field of KIND; -1 where no field is of it. */
static int
find_kind(const struct shown *s, enum et_field_kind kind)
{
    for (int i = 0; i < s->info.n_fields; i++)
        if (field_of(s, i)->kind == kind)
            return i;
    return -1;
}

/* Elements of one sample of field I of the batch. */
static int64_t
elements(const struct shown *s, int i)
{
    const struct et_desc *d = &s->batch->field[i].desc;
    int64_t n = 1;
    for (int k = 1; k < d->ndim; k++)
        n *= d->shape[k];
    return n;
}

static double
element(const struct shown *s, int i, int64_t at)
{
    const struct et_batch_field *f = &s->batch->field[i];
    return f->desc.dtype == ET_I32 ? f->host.i32[at] : (double)f->host.f32[at];
}

/* ---- pictures ---- */

/* The byte whose value, by the loader's transforms, is V in channel C. */
static uint8_t
byte_of(const struct shown *s, int c, float v)
{
    float black = s->loader->pipeline.table[c][0],
          white = s->loader->pipeline.table[c][255];
    float share = white != black ? (v - black) / (white - black) : 0;
    return share <= 0 ? 0 : share >= 1 ? 255 : (uint8_t)(share * 255 + 0.5F);
}

/* Colours that are far from each other, by class; 0 and what counts nothing have none.
 * Hues are a golden ratio of the circle apart. */
static bool
class_color(int32_t class, double rgb[3])
{
    if (class <= 0)
        return false;
    double hue = class * 0.618033988749895;
    hue = 6 * (hue - (double)(int64_t)hue);
    for (int c = 0; c < 3; c++) {
        double d = hue - 2 * c;
        d = d < -3 ? d + 6 : d > 3 ? d - 6 : d; /* from the channel's own hue */
        d = d < 0 ? -d : d;
        rgb[c] = d <= 1 ? 255 : d >= 2 ? 0 : 255 * (2 - d);
    }
    return true;
}

/* The pixels of sample AT as RGB [H][W][3], with the mask over them. */
static void
make_pixels(const struct shown *s, int image, int mask, int64_t at, uint8_t *rgb)
{
    const struct et_desc *d = &s->batch->field[image].desc;
    int64_t C = d->shape[1], pixels = d->shape[2] * d->shape[3];
    const float *from = s->batch->field[image].host.f32 + at * C * pixels;
    for (int64_t i = 0; i < pixels; i++) {
        double over[3];
        bool colored =
            mask >= 0 &&
            class_color(s->batch->field[mask].host.i32[at * pixels + i], over);
        for (int c = 0; c < 3; c++) {
            int channel = C >= 3 ? c : 0;
            uint8_t byte = byte_of(s, channel, from[i * C + channel]);
            rgb[i * 3 + c] = colored ? (uint8_t)((byte + over[c]) / 2) : byte;
        }
    }
}

static int
terminal_width(void)
{
    struct winsize size = {0};
    if (isatty(STDOUT_FILENO) && ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) == 0 &&
        size.ws_col >= TILE)
        return size.ws_col;
    return WIDTH;
}

/* "3 Dress", "3", or how many numbers: what belongs below a picture. */
static const char *
target_text(const struct shown *s, int64_t at, char *text, size_t size)
{
    int i = ET_FIELD_TARGET;
    text[0] = '\0';
    if (s->info.n_fields <= i || field_of(s, i)->kind == ET_FIELD_MASK ||
        elements(s, i) != 1)
        return text;
    double v = element(s, i, at);
    const struct et_field *f = field_of(s, i);
    bool named = s->class_names && v >= 0 && v < (double)f->below;
    snprintf(text, size, "%.6g%s%s", v, named ? " " : "",
             named ? s->class_names[(int)v] : "");
    return text;
}

static et_status
show_row(const struct shown *s, int image, int mask, int64_t first, int n)
{
    struct et_ctx *cx = s->c->cx;
    const struct et_desc *d = &s->batch->field[image].desc;
    int64_t h = d->shape[2], w = d->shape[3];
    int rows = cli_picture_rows(TILE, h, w);
    struct cli_picture sheet;
    void *rgb;
    ET_TRY(et_alloc(cx, (size_t)(h * w * 3), &rgb));
    et_status status = cli_picture_new(cx, n * (TILE + GAP) - GAP, rows, &sheet);
    for (int i = 0; i < n && status == ET_OK; i++) {
        make_pixels(s, image, mask, first + i, rgb);
        cli_picture_put(&sheet, (struct cli_place){i * (TILE + GAP), 0, TILE, rows},
                        rgb, h, w);
    }
    et_free(cx, rgb);
    if (status != ET_OK)
        return status;
    cli_picture_print(&sheet, cli_picture_form(s->c));
    cli_picture_free(cx, &sheet);
    for (int i = 0; i < n; i++) {
        char text[64];
        target_text(s, first + i, text, sizeof text);
        if (i + 1 < n)
            et_print(stdout, "%-*.*s", TILE + GAP, TILE + GAP - 1, text);
        else
            et_print(stdout, "%.*s\n", TILE, text);
    }
    return ET_OK;
}

static et_status
show_pictures(const struct shown *s, int image)
{
    int columns = terminal_width() / (TILE + GAP);
    int mask = find_kind(s, ET_FIELD_MASK);
    for (int64_t at = 0; at < s->n; at += columns) {
        int64_t left = s->n - at;
        ET_TRY(show_row(s, image, mask, at, (int)(left < columns ? left : columns)));
    }
    return ET_OK;
}

/* ---- words and numbers ---- */

/* Bytes as what they are as text: those that would move the terminal as \xHH. */
static void
print_bytes(const struct shown *s, int i, int64_t at, int64_t n)
{
    for (int64_t k = 0; k < n; k++) {
        int byte = s->batch->field[i].host.i32[at * elements(s, i) + k];
        if (byte == '\n')
            fputs("\\n", stdout);
        else if (byte >= ' ' && byte < 127)
            putchar(byte);
        else
            printf("\\x%02x", (unsigned)byte);
    }
}

/* How many of sample AT's tokens are no padding. */
static int64_t
real_tokens(const struct shown *s, int i, int64_t at)
{
    int64_t n = elements(s, i), real = 0;
    for (int k = 0; k < s->info.n_fields; k++) {
        if (strcmp(field_of(s, k)->name, "attention_mask") != 0)
            continue;
        for (int64_t t = 0; t < n; t++)
            real += s->batch->field[k].host.i32[at * n + t] != 0;
        return real;
    }
    return n;
}

static void
print_field(const struct shown *s, int i, int64_t at)
{
    const struct et_field *f = field_of(s, i);
    int64_t n = elements(s, i), from = at * n;
    bool tokens = f->kind == ET_FIELD_TOKENS;
    char text[64];
    if (i == ET_FIELD_TARGET && n == 1) {
        et_print(stdout, "  %s: %s\n", f->name, target_text(s, at, text, sizeof text));
        return;
    }
    int64_t most = tokens ? TOKENS : NUMBERS, real = tokens ? real_tokens(s, i, at) : n;
    int64_t show = real < most ? real : most;
    et_print(stdout, "  %s: ", f->name);
    if (tokens && f->below == 256)
        print_bytes(s, i, at, show);
    else
        for (int64_t k = 0; k < show; k++)
            printf(k ? " %.6g" : "%.6g", element(s, i, from + k));
    if (show < real)
        printf(" ... of %lld", (long long)real);
    if (real < n)
        printf(" and %lld of padding", (long long)(n - real));
    putchar('\n');
}

static void
show_fields(const struct shown *s)
{
    for (int64_t at = 0; at < s->n; at++) {
        printf("sample %lld\n", (long long)(s->batch->first + at));
        for (int i = 0; i < s->info.n_fields; i++)
            print_field(s, i, at);
    }
}

static json_t *
field_json(const struct shown *s, int i, int64_t at)
{
    const struct et_desc *d = &s->batch->field[i].desc;
    int64_t n = elements(s, i);
    json_t *values = json_array(), *shape = json_array();
    for (int k = 1; k < d->ndim; k++)
        json_array_append_new(shape, json_integer((json_int_t)d->shape[k]));
    for (int64_t k = 0; k < n && n <= JSON_MOST; k++)
        json_array_append_new(values,
                              d->dtype == ET_I32
                                  ? json_integer((json_int_t)element(s, i, at * n + k))
                                  : json_real(element(s, i, at * n + k)));
    if (n <= JSON_MOST)
        return json_pack("{s:o, s:o}", "shape", shape, "values", values);
    json_decref(values);
    return json_pack("{s:o}", "shape", shape);
}

static int
show_json(const struct shown *s)
{
    json_t *list = json_array();
    for (int64_t at = 0; at < s->n; at++) {
        json_t *sample = json_object();
        for (int i = 0; i < s->info.n_fields; i++)
            json_object_set_new(sample, field_of(s, i)->name, field_json(s, i, at));
        json_array_append_new(list, sample);
    }
    return cli_print_json(list);
}

/* ---- where they come from ---- */

static int
show_batch(struct shown *s)
{
    struct cli *c = s->c;
    int image = find_kind(s, ET_FIELD_IMAGE);
    if (c->opt.json)
        return show_json(s);
    if (image < 0) {
        show_fields(s);
        return CLI_OK;
    }
    et_status status = show_pictures(s, image);
    return status == ET_OK ? CLI_OK : cli_fail_status(c, ETI_STAGE_DATA, status);
}

/* Opens TYPE with OPTIONS and shows what the loader hands out first. */
static int
show(struct cli *c, const struct et_dataset_class *type, void *options, uint32_t seed,
     bool train)
{
    struct et_data_options *common = options;
    struct et_dataset *data = NULL;
    const struct et_loader_config config = {.seed = seed, .train = train};
    struct shown s = {.c = c, .n = c->opt.limit > 0 ? c->opt.limit : SAMPLES};
    if (common->batch_size < s.n) /* ET_INT_UNSET is the least number */
        common->batch_size = s.n;
    int code = CLI_OK;
    et_status status = et_dataset_open(c->cx, type, options, &data);
    if (status == ET_OK)
        status = et_loader_new(c->cx, data, &config, &s.loader);
    if (status == ET_OK)
        status = et_loader_next(c->cx, s.loader, &s.batch);
    if (status == ET_OK) {
        et_loader_get_info(s.loader, &s.info);
        s.class_names = data->facts.class_names;
        s.n = s.n < s.batch->n_samples ? s.n : s.batch->n_samples;
        code = show_batch(&s);
        et_loader_release(s.loader, s.batch);
    } else {
        code = cli_fail_status(c, ETI_STAGE_DATA, status);
    }
    et_loader_free(&s.loader);
    et_dataset_close(&data);
    return code;
}

static int
show_dataset(struct cli *c, const struct et_dataset_class *type)
{
    void *options;
    int code = cli_data_options(c, type, "data show", &options);
    if (code == CLI_OK)
        code = show(c, type, options, 0, false);
    cli_data_options_free(c, type, options);
    return code;
}

/* WHICH of a recipe's data. */
static int
show_recipe(struct cli *c, const char *name, bool eval)
{
    int code;
    struct et_recipe *recipe = cli_load_recipe(c, name, &code);
    if (!recipe)
        return code;
    const struct et_part *part = !eval                     ? &recipe->train_data
                                 : recipe->eval_data.n > 0 ? &recipe->eval_data.v[0]
                                                           : NULL;
    if (part && part->component)
        code = show(c, ETI_CLASS(dataset, part->component), part->options,
                    (uint32_t)recipe->seed, !eval);
    else
        code = cli_fail(c, CLI_E_OPERAND, NULL, "%s has no %s", name,
                        eval ? "eval_data" : "train_data");
    et_recipe_free(&recipe);
    return code;
}

int
cli_data_show(struct cli *c)
{
    const char *name = c->arg[1], *which = c->n_args > 2 ? c->arg[2] : "train_data";
    bool eval = strcmp(which, "eval_data") == 0;
    const struct et_dataset_class *type =
        ETI_CLASS(dataset, cli_find_component(c, ET_KIND_DATASET, name));
    if (type && c->n_args == 2)
        return show_dataset(c, type);
    if (!eval && strcmp(which, "train_data") != 0)
        return cli_fail(c, CLI_E_OPERAND, NULL,
                        "data show takes train_data or eval_data of a recipe, not '%s'",
                        which);
    return show_recipe(c, name, eval);
}
