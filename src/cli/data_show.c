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
#include "core/data/look.h"
#include "core/image/class_color.h"
#include "tui/grid.h"

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
    struct eti_batch_look look;
    int64_t n;  /* samples of the batch to show */
    json_t *on; /* the transforms, and which are on */
};

/* ---- pictures ---- */

static int
terminal_width(void)
{
    struct winsize size = {0};
    if (isatty(STDOUT_FILENO) && ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) == 0 &&
        size.ws_col >= TILE)
        return size.ws_col;
    return WIDTH;
}

static et_status
show_row(const struct shown *s, int image, int mask, int64_t first, int n)
{
    struct et_ctx *cx = s->c->cx;
    const struct et_desc *d = &s->look.batch->field[image].desc;
    int64_t h = d->shape[2], w = d->shape[3];
    int rows = cli_picture_rows(TILE, h, w);
    struct cli_picture sheet;
    void *rgb;
    ET_TRY(et_alloc(cx, (size_t)(h * w * 3), &rgb));
    et_status status = cli_picture_new(cx, n * (TILE + GAP) - GAP, rows, &sheet);
    for (int i = 0; i < n && status == ET_OK; i++) {
        eti_look_pixels(&s->look, image, mask, first + i, rgb);
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
        eti_look_target(&s->look, first + i, text, sizeof text);
        if (i + 1 < n)
            et_print(stdout, "%-*.*s", TILE + GAP, TILE + GAP - 1, text);
        else
            et_print(stdout, "%.*s\n", TILE, text);
    }
    return ET_OK;
}

/* Which class has which colour: those that the samples have, each with its swatch; only
 * where there are colours. */
static void
show_classes(const struct shown *s, int mask)
{
    const enum cli_picture_form form = cli_picture_form(s->c);
    const int64_t classes = s->look.info.field[mask].below;
    char *const *names = (char *const *)s->look.facts->class_names;
    int64_t count[ETI_LOOK_CLASSES] = {0};
    const int width = terminal_width();
    int used = 0;
    if (form == CLI_PICTURE_ASCII || classes > ETI_LOOK_CLASSES)
        return;
    for (int64_t at = 0; at < s->n; at++)
        eti_look_classes(&s->look, mask, at, count);
    for (int64_t k = 1; k < classes; k++) {
        char text[64];
        uint8_t rgb[3];
        if (count[k] == 0)
            continue;
        snprintf(text, sizeof text, "%lld%s%.48s", (long long)k, names ? " " : "",
                 names ? names[k] : "");
        const int wide = 2 + 1 + tui_width(text) + 2;
        if (used > 0 && used + wide > width) {
            putchar('\n');
            used = 0;
        }
        eti_class_color((int32_t)k, rgb);
        cli_picture_swatch(rgb, form);
        et_print(stdout, " %s  ", text);
        used += wide;
    }
    if (used > 0)
        putchar('\n');
}

static et_status
show_pictures(const struct shown *s, int image)
{
    int columns = terminal_width() / (TILE + GAP);
    int mask = eti_look_find(&s->look, ET_FIELD_MASK);
    for (int64_t at = 0; at < s->n; at += columns) {
        int64_t left = s->n - at;
        ET_TRY(show_row(s, image, mask, at, (int)(left < columns ? left : columns)));
    }
    if (mask >= 0)
        show_classes(s, mask);
    return ET_OK;
}

/* ---- words and numbers ---- */

/* Bytes as what they are as text: those that would move the terminal as \xHH. */
static void
print_bytes(const struct shown *s, int i, int64_t at, int64_t n)
{
    for (int64_t k = 0; k < n; k++) {
        int byte =
            s->look.batch->field[i].host.i32[at * eti_look_elements(&s->look, i) + k];
        if (byte == '\n')
            fputs("\\n", stdout);
        else if (byte >= ' ' && byte < 127)
            putchar(byte);
        else
            printf("\\x%02x", (unsigned)byte);
    }
}

static void
print_field(const struct shown *s, int i, int64_t at)
{
    const struct et_field *f = &s->look.info.field[i];
    int64_t n = eti_look_elements(&s->look, i), from = at * n;
    bool tokens = f->kind == ET_FIELD_TOKENS;
    char text[64];
    if (i == ET_FIELD_TARGET && n == 1) {
        et_print(stdout, "  %s: %s\n", f->name,
                 eti_look_target(&s->look, at, text, sizeof text));
        return;
    }
    int64_t most = tokens ? TOKENS : NUMBERS,
            real = tokens ? eti_look_tokens(&s->look, i, at) : n;
    int64_t show = real < most ? real : most;
    et_print(stdout, "  %s: ", f->name);
    if (tokens && f->below == 256 && i <= ET_FIELD_TARGET) /* not types of tokens */
        print_bytes(s, i, at, show);
    else
        for (int64_t k = 0; k < show; k++)
            printf(k ? " %.6g" : "%.6g", eti_look_element(&s->look, i, from + k));
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
        printf("sample %lld\n", (long long)(s->look.batch->first + at));
        for (int i = 0; i < s->look.info.n_fields; i++)
            print_field(s, i, at);
    }
}

static json_t *
field_json(const struct shown *s, int i, int64_t at)
{
    const struct et_desc *d = &s->look.batch->field[i].desc;
    int64_t n = eti_look_elements(&s->look, i);
    json_t *values = json_array(), *shape = json_array();
    for (int k = 1; k < d->ndim; k++)
        json_array_append_new(shape, json_integer((json_int_t)d->shape[k]));
    for (int64_t k = 0; k < n && n <= JSON_MOST; k++)
        json_array_append_new(
            values,
            d->dtype == ET_I32
                ? json_integer((json_int_t)eti_look_element(&s->look, i, at * n + k))
                : json_real(eti_look_element(&s->look, i, at * n + k)));
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
        for (int i = 0; i < s->look.info.n_fields; i++)
            json_object_set_new(sample, s->look.info.field[i].name,
                                field_json(s, i, at));
        json_array_append_new(list, sample);
    }
    return cli_print_json(list);
}

/* ---- where they come from ---- */

static int
show_batch(struct shown *s)
{
    struct cli *c = s->c;
    int image = eti_look_find(&s->look, ET_FIELD_IMAGE);
    if (c->opt.json)
        return show_json(s);
    if (image < 0) {
        show_fields(s);
        return CLI_OK;
    }
    et_status status = show_pictures(s, image);
    return status == ET_OK ? CLI_OK : cli_fail_status(c, ETI_STAGE_DATA, status);
}

/* Samples from --from on of epoch --epoch: a batch of as many as are shown. */
static et_status
go_to(struct shown *s)
{
    const struct cli_options *o = &s->c->opt;
    const int64_t from = o->from > 0 ? o->from : 0, epoch = o->epoch > 0 ? o->epoch : 0;
    ET_TRY(et_loader_seek(s->c->cx, s->look.loader, epoch, from / s->n));
    ET_TRY(et_loader_next(s->c->cx, s->look.loader, &s->look.batch));
    if (!s->look.batch)
        return ET_FAIL(s->c->cx, ET_EINVAL, "an epoch has no sample %lld",
                       (long long)from);
    return ET_OK;
}

/* Leaves out the transforms that --without names: they stand behind the others, and
 * *N is how many are left. */
static int
choose_transforms(struct cli *c, struct et_parts *all, bool *off, int *n)
{
    const char *text = c->opt.without;
    for (; text && *text;
         text += strcspn(text, ",") + (text[strcspn(text, ",")] == ',')) {
        const size_t length = strcspn(text, ",");
        bool found = false;
        for (int i = 0; i < all->n && i < CLI_TRANSFORMS; i++) {
            char place[16];
            const char *name = all->v[i].component->name;
            snprintf(place, sizeof place, "%d", i);
            const bool is_it =
                (strlen(name) == length && strncmp(text, name, length) == 0) ||
                (strlen(place) == length && strncmp(text, place, length) == 0);
            off[i] = off[i] || is_it;
            found = found || is_it;
        }
        if (!found)
            return cli_fail(c, CLI_E_VALUE, NULL,
                            "--without %.*s: the data have no such transform",
                            (int)length, text);
    }
    *n = 0;
    for (int i = 0; i < all->n; i++) {
        const struct et_part one = all->v[i];
        if (i < CLI_TRANSFORMS && off[i])
            continue;
        memmove(&all->v[*n + 1], &all->v[*n], (size_t)(i - *n) * sizeof one);
        all->v[(*n)++] = one;
    }
    return CLI_OK;
}

/* Opens TYPE with OPTIONS and shows what the loader hands out. */
static int
show_opened(struct shown *s, const struct et_dataset_class *type, void *options,
            uint32_t seed, bool train)
{
    struct cli *c = s->c;
    struct et_dataset *data = NULL;
    const struct et_loader_config config = {.seed = seed, .train = train};
    int code = CLI_OK;
    et_status status = et_dataset_open(c->cx, type, options, &data);
    if (status == ET_OK)
        status = et_loader_new(c->cx, data, &config, &s->look.loader);
    if (status == ET_OK)
        status = go_to(s);
    if (status == ET_OK) {
        et_loader_get_info(s->look.loader, &s->look.info);
        s->look.facts = &data->facts;
        s->n = s->n < s->look.batch->n_samples ? s->n : s->look.batch->n_samples;
        code = c->opt.pictures
                   ? cli_print_json(cli_data_pictures(c, &s->look, data, s->n, s->on))
                   : show_batch(s);
        et_loader_release(s->look.loader, s->look.batch);
    } else {
        code = cli_fail_status(c, ETI_STAGE_DATA, status);
    }
    et_loader_free(&s->look.loader);
    et_dataset_close(&data);
    return code;
}

static int
show(struct cli *c, const struct et_dataset_class *type, void *options, uint32_t seed,
     bool train)
{
    struct et_data_options *common = options;
    bool off[CLI_TRANSFORMS] = {false};
    const char *names[CLI_TRANSFORMS] = {NULL};
    const int n = common->transforms.n;
    int kept = n;
    struct shown s = {.c = c, .n = c->opt.limit > 0 ? c->opt.limit : SAMPLES};
    if (c->opt.pictures || c->opt.from > 0 || common->batch_size < s.n)
        common->batch_size = s.n; /* ET_INT_UNSET is the least number */
    for (int i = 0; i < n && i < CLI_TRANSFORMS; i++)
        names[i] = common->transforms.v[i].component->name;
    int code = choose_transforms(c, &common->transforms, off, &kept);
    if (code != CLI_OK)
        return code;
    s.on = json_array();
    for (int i = 0; i < n && i < CLI_TRANSFORMS; i++)
        json_array_append_new(s.on,
                              json_pack("{s:s, s:b}", "name", names[i], "on", !off[i]));
    common->transforms.n = kept;
    code = show_opened(&s, type, options, seed, train);
    common->transforms.n = n; /* who owns them frees them all */
    json_decref(s.on);
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
