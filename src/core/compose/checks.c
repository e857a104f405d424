/* SPDX-License-Identifier: Apache-2.0 */
/* checks.c: see checks.h. What algorithms do to each other is in
 * algorithms/methods.def. */
#include "config.h"

#include "core/compose/checks.h"

#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "core/algorithms/methods.h"
#include "core/assemble/assemble.h"
#include "etude/data.h"

struct list {
    struct et_ctx *cx;
    const struct et_recipe *recipe;
    struct eti_check *out;
    int n, size;
    struct eti_check left_over; /* there is no room for */
};

static struct eti_check *add(struct list *l, bool is_warning, const struct et_value *at,
                             const char *fmt, ...) ET_PRINTF(4, 5);

static struct eti_check *
add(struct list *l, bool is_warning, const struct et_value *at, const char *fmt, ...)
{
    struct eti_check *c = l->n < l->size ? &l->out[l->n++] : &l->left_over;
    va_list args;
    *c = (struct eti_check){.is_warning = is_warning};
    if (at && at->source->origin == ETI_ORIGIN_RECIPE) {
        c->line = at->key_line ? at->key_line : at->line;
        c->column = at->key_column ? at->key_column : at->column;
    }
    va_start(args, fmt);
    vsnprintf(c->text, sizeof c->text, fmt, args);
    va_end(args);
    return c;
}

const char *
eti_recipe_domain(const struct et_recipe *recipe)
{
    const struct et_component *model = recipe ? recipe->model.component : NULL;
    return model && model->applies_to ? model->applies_to : "any";
}

/* ---- algorithms ---- */

static bool
is_on(const struct et_part *part)
{
    return part->component && !part->off;
}

static bool
mixes_losses(const struct et_part *part)
{
    const struct et_algorithm_class *c = ETI_CLASS(algorithm, part->component);
    const struct et_algorithm a = {.type = c, .options = part->options};
    return c->interpolates_loss && c->interpolates_loss(&a);
}

static void
check_pair(struct list *l, int i, int j)
{
    const struct et_part *a = &l->recipe->algorithms.v[i];
    const struct et_part *b = &l->recipe->algorithms.v[j];
    const char *x = a->component->name, *y = b->component->name;
    bool order = false;
    const char *why = eti_methods_clash(x, y, &order);
    if (why && order) {
        struct eti_check *c =
            add(l, true, a->value, "%s stands before %s: %s", x, y, why);
        c->fix = ETI_FIX_MOVE_UP;
        c->by = j - i;
        snprintf(c->who, sizeof c->who, "%s", y);
    } else if (why || (mixes_losses(a) && mixes_losses(b))) {
        struct eti_check *c = add(l, true, b->value, "%s and %s %s", x, y,
                                  why ? why : "both mix losses: not meant together");
        c->fix = ETI_FIX_TURN_OFF;
        snprintf(c->who, sizeof c->who, "%s", x);
    }
}

static void
check_algorithms(struct list *l)
{
    const struct et_parts *all = &l->recipe->algorithms;
    const char *domain = eti_recipe_domain(l->recipe);
    for (int i = 0; i < all->n; i++) {
        const struct et_component *c = all->v[i].component;
        if (!is_on(&all->v[i]))
            continue;
        const char *to = c->applies_to ? c->applies_to : "any";
        if (strcmp(to, "any") != 0 && strcmp(domain, "any") != 0 &&
            strcmp(to, domain) != 0) {
            struct eti_check *w =
                add(l, true, all->v[i].value, "%s is for %s, the model is of %s",
                    c->name, to, domain);
            w->fix = ETI_FIX_TURN_OFF;
            snprintf(w->who, sizeof w->who, "%s", c->name);
        }
        char text[sizeof l->left_over.text];
        if (eti_method_misses(c, all->v[i].options, l->recipe->max_duration, text,
                              sizeof text))
            add(l, true, all->v[i].value, "%s", text);
        for (int j = i + 1; j < all->n; j++)
            if (is_on(&all->v[j]))
                check_pair(l, i, j);
    }
}

/* ---- the rest ---- */

static void
warn_of_gaps(struct list *l)
{
    const struct et_recipe *r = l->recipe;
    const struct et_component *optimizer = r->optimizer.component;
    if (optimizer && !r->optimizer.value)
        add(l, true, NULL, "no optimizer is given: %s with lr 0.1", optimizer->name);
    if (r->eval_data.n == 0)
        add(l, true, NULL, "no eval_data: nothing is evaluated");
    if (r->checkpoint.off)
        add(l, true, NULL, "no checkpoints but at the end: a crash loses the run");
}

/* Another dataset may have been chosen for one of the two alone. */
static void
compare_data(struct list *l)
{
    const struct et_recipe *r = l->recipe;
    const struct et_component *train = r->train_data.component;
    for (int i = 0; train && i < r->eval_data.n; i++) {
        const struct et_part *eval = &r->eval_data.v[i];
        const struct et_component *c = eval->component;
        if (!c || c == train)
            continue;
        bool is_other = c->applies_to && train->applies_to &&
                        strcmp(c->applies_to, train->applies_to) != 0;
        if (is_other)
            add(l, true, eval->value, "eval_data %s is for %s, train_data %s for %s",
                c->name, c->applies_to, train->name, train->applies_to);
        else
            add(l, true, eval->value, "eval_data is %s, train_data is %s", c->name,
                train->name);
    }
}

static void
say_batch(struct list *l)
{
    const struct et_recipe *r = l->recipe;
    const struct et_data_options *data =
        r->train_data.component ? r->train_data.options : NULL;
    int64_t ranks = r->launch.nproc == ET_INT_UNSET ? 1 : r->launch.nproc;
    char pieces[64] = "";
    if (!data || data->batch_size == ET_INT_UNSET || ranks < 1)
        return;
    if (r->microbatch_size != ET_INT_UNSET)
        snprintf(pieces, sizeof pieces, ", %" PRId64 " at a time", r->microbatch_size);
    else if (r->grad_accum != ET_INT_UNSET)
        snprintf(pieces, sizeof pieces, ", in %" PRId64 " pieces", r->grad_accum);
    add(l, false, r->train_data.value,
        "batch %" PRId64 " = %" PRId64 " x %" PRId64 " %s%s", data->batch_size,
        data->batch_size / ranks, ranks, ranks == 1 ? "rank" : "ranks", pieces);
}

static void
say_rest(struct list *l)
{
    const struct et_recipe *r = l->recipe;
    char text[ET_TIME_TEXT_BYTES];
    if (r->seed == ET_INT_UNSET)
        add(l, false, NULL, "seed: drawn at the start, and recorded");
    if (r->checkpoint.off || !et_time_is_set(r->checkpoint.interval))
        return;
    et_time_text(r->checkpoint.interval, text, sizeof text);
    if (r->checkpoint.keep < 0)
        add(l, false, NULL, "a checkpoint every %s, all kept", text);
    else
        add(l, false, NULL, "a checkpoint every %s, the last %" PRId64 " kept", text,
            r->checkpoint.keep);
}

/* ---- what was found ---- */

/* "1,281,167". */
static const char *
count(int64_t n, char buf[32])
{
    char digits[24];
    int length = snprintf(digits, sizeof digits, "%" PRId64, n), at = 0;
    for (int i = 0; i < length; i++) {
        if (i > 0 && (length - i) % 3 == 0 && digits[i - 1] != '-')
            buf[at++] = ',';
        buf[at++] = digits[i];
    }
    buf[at] = '\0';
    return buf;
}

/* "642 MB", of 10^6. */
static const char *
bytes(double n, char buf[32])
{
    static const char *const units[] = {"B", "KB", "MB", "GB", "TB"};
    int i = 0;
    for (; n >= 999.5 && i < 4; i++)
        n /= 1000;
    snprintf(buf, 32, "%.*f %s", i > 0 && n < 9.95 ? 1 : 0, n, units[i]);
    return buf;
}

static void
say_data(struct list *l, const struct eti_found *f)
{
    char a[32], b[32];
    for (int i = 0; i < f->n_data; i++)
        add(l, false, NULL,
            f->data[i].is_text ? "%s%s: %s tokens, %s words in its vocabulary"
                               : "%s%s: %s images, %s classes",
            i ? "evaluation: " : "", f->data[i].name, count(f->data[i].n, a),
            count(f->data[i].kinds, b));
}

static void
compare_found(struct list *l, const struct eti_found *f)
{
    char a[32], b[32];
    if (*f->problem)
        add(l, true, NULL, "%s", f->problem)->is_fatal = f->is_refused;
    for (int i = 1; i < f->n_data; i++)
        if (f->data[i].kinds > 0 && f->data[0].kinds > 0 &&
            f->data[i].is_text == f->data[0].is_text &&
            f->data[i].kinds != f->data[0].kinds)
            add(l, true, NULL, "%s has %s %s, %s has %s", f->data[0].name,
                count(f->data[0].kinds, a), f->data[0].is_text ? "words" : "classes",
                f->data[i].name, count(f->data[i].kinds, b));
}

/* The new one is written before the oldest goes. */
static void
say_disk(struct list *l, const struct eti_found *f)
{
    const struct et_recipe_checkpoint *c = &l->recipe->checkpoint;
    char need[32], left[32];
    double n = c->off || c->keep == 0 ? 1 : c->keep < 0 ? 1 : (double)c->keep;
    if (!(f->checkpoint_bytes >= 0) || !(f->free_bytes >= 0))
        return;
    bytes(f->free_bytes, left);
    if (f->free_bytes < (n + 1) * f->checkpoint_bytes)
        add(l, true, NULL, "disk: %.0f checkpoint%s and the next need %s, %s free", n,
            n == 1 ? "" : "s", bytes((n + 1) * f->checkpoint_bytes, need), left);
    else if (c->keep < 0 && !c->off)
        add(l, false, NULL, "disk: each checkpoint needs %s and is kept, %s free",
            bytes(f->checkpoint_bytes, need), left);
    else
        add(l, false, NULL, "disk: %.0f checkpoint%s need%s %s, %s free", n,
            n == 1 ? "" : "s", n == 1 ? "s" : "", bytes(n * f->checkpoint_bytes, need),
            left);
}

/* Offers to save in the recipe what grad_accum auto came to, whether memory or the plan
 * decided it: the next run need not find it again. */
static void
offer_microbatches(struct list *l, const struct eti_found *f)
{
    if (l->recipe->grad_accum != ET_INT_UNSET ||
        l->recipe->microbatch_size != ET_INT_UNSET || f->microbatches < 2)
        return;
    struct eti_check *c =
        add(l, true, NULL, "grad_accum is auto, and %s came to %" PRId64 ": save that?",
            f->run, f->microbatches);
    c->fix = ETI_FIX_SET;
    c->by = (int)f->microbatches;
    snprintf(c->who, sizeof c->who, "grad_accum");
}

int
eti_checks_found(struct et_ctx *cx, const struct et_recipe *recipe,
                 const struct eti_found *found, struct eti_check *out, int size)
{
    struct list l = {.cx = cx, .recipe = recipe, .out = out, .size = size};
    if (!recipe)
        return 0;
    compare_found(&l, found);
    offer_microbatches(&l, found);
    say_data(&l, found);
    say_disk(&l, found);
    return l.n;
}

/* ---- all ---- */

int
eti_checks(struct et_ctx *cx, const struct et_recipe *recipe, struct eti_check *out,
           int size)
{
    struct list l = {.cx = cx, .recipe = recipe, .out = out, .size = size};
    if (!recipe)
        return 0;
    check_algorithms(&l);
    warn_of_gaps(&l);
    compare_data(&l);
    say_batch(&l);
    say_rest(&l);
    return l.n;
}
