/* SPDX-License-Identifier: Apache-2.0 */
/* Models as they are built: the layers of ResNet-9, one by one; and parameters that are
 * bound in flat memory for a loop of one's own. */
#include "config.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "etude/model.h"
#include "etude/nn.h"
#include "etude/optim.h"
#include "t/data/fixture.h"
#include "t/tap.h"

static struct et_ctx *cx;
static struct et_device *dev;

static struct et_model *
make(const char *name)
{
    const struct et_model_facts facts = {
        .channels = 3, .height = 32, .width = 32, .num_classes = 10};
    const struct et_model_class *type = et_model_class_find(name);
    struct et_model *m;
    void *options = NULL;
    need(cx, et_options_new(cx, &type->info, NULL, &options));
    need(cx, et_model_new(cx, type, options, &facts, &m));
    et_options_free(&type->info, &options);
    return m;
}

/* The item of M called NAME; NULL: M has no such item. */
static struct et_module *
item(const struct et_module *m, const char *name)
{
    for (int i = 0; i < m->n_items; i++)
        if (strcmp(m->items[i].name, name) == 0)
            return m->items[i].module;
    return NULL;
}

/* spec/trainer.md 15.2: which convolutions pool, and the momentum of all norms. */
static void
resnet9(void)
{
    static const struct {
        const char *name;
        bool pools;
        int64_t channels;
    } rows[] = {{"conv1", false, 64},
                {"conv2", true, 128},
                {"conv3", true, 256},
                {"conv4", true, 256}};
    struct et_model *m = make("resnet9");
    int64_t count, want = 256 * 10 + 10, in = 3;
    int wrong = 0;
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        const struct et_module *block = item(m->root, rows[i].name);
        const struct et_batch_norm_module *bn =
            block ? (void *)item(block, "bn") : NULL;
        wrong += !bn || bn->o.momentum != 0.9 || bn->o.num_features != rows[i].channels;
        wrong += block && (item(block, "pool") != NULL) != rows[i].pools;
        want += rows[i].channels * (9 * in + 2);
        in = rows[i].channels;
    }
    is_int(wrong, 0,
           "ResNet-9 pools behind all convolutions but the first, norms have "
           "the momentum 0.9");
    want += 2 * 128 * (9 * 128 + 2) + 2 * 256 * (9 * 256 + 2);
    need(cx, et_module_count(cx, m->root, &count));
    is_int(count, want, "and it has its number of parameters");
    et_model_free(&m);
}

/* Data that a model of language has too few places or tokens for. */
static void
languages(void)
{
    static const char *const names[] = {"gpt2", "bert"};
    for (int i = 0; i < 2; i++)
        for (int k = 0; k < 3; k++) {
            const struct et_model_facts facts = {.seq_len = 8 + (k == 1),
                                                 .vocab_size = 11 + (k == 2)};
            const struct et_model_class *type = et_model_class_find(names[i]);
            const char *const set[][2] = {{"n_layers", "1"},
                                          {"d_model", "8"},
                                          {"n_heads", "2"},
                                          {"max_seq_len", "8"},
                                          {"vocab_size", "11"}};
            struct et_model *m = NULL;
            void *options;
            need(cx, et_options_new(cx, &type->info, NULL, &options));
            for (size_t o = 0; o < sizeof set / sizeof *set; o++)
                need(cx, et_options_set(cx, type->info.options, options, set[o][0],
                                        set[o][1]));
            et_status s = et_model_new(cx, type, options, &facts, &m);
            const char *said = take_error(cx);
            ok(k == 0   ? s == ET_OK
               : k == 1 ? s == ET_EINVAL && strstr(said, "sequences of 9 tokens")
                        : s == ET_EINVAL && strstr(said, "12 tokens"),
               "%s of 8 places and 11 tokens for data of %d and %d: %s", names[i],
               (int)facts.seq_len, (int)facts.vocab_size, said);
            if (m)
                et_model_free(&m);
            et_options_free(&type->info, &options);
        }
}

/* The table of BERT's kinds of tokens has as many rows as there are to be. */
static void
kinds(void)
{
    const struct et_model_facts facts = {.seq_len = 8, .vocab_size = 11};
    const struct et_model_class *type = et_model_class_find("bert");
    for (int n = 1; n < 4; n++) {
        char text[8];
        struct et_model *m;
        struct et_leaves l;
        void *options;
        int rows = 0;
        snprintf(text, sizeof text, "%d", n);
        need(cx, et_options_new(cx, &type->info, NULL, &options));
        need(cx, et_options_set(cx, type->info.options, options, "token_types", text));
        need(cx, et_model_new(cx, type, options, &facts, &m));
        need(cx, et_module_leaves(cx, m->root, ET_PARAM, &l));
        for (int i = 0; i < l.n; i++)
            if (strstr(l.v[i].name, "token_type"))
                rows = (int)l.v[i].param->desc.shape[0];
        is_int(rows, n, "BERT tells %d kinds of tokens apart", n);
        et_leaves_release(&l);
        et_model_free(&m);
        et_options_free(&type->info, &options);
    }
}

/* ---- a space of one's own ---- */

/* The sum of all parameters, each times its place. */
static double
sum_of(struct et_model *m, uint32_t seed)
{
    struct et_leaves l;
    double sum = 0;
    need(cx, et_module_leaves(cx, m->root, ET_PARAM, &l));
    for (int i = 0; i < l.n; i++) {
        int64_t n = et_desc_count(&l.v[i].param->desc);
        float *v = malloc((size_t)n * sizeof *v);
        need(cx, et_param_read(cx, l.v[i].param, l.v[i].name, seed, v, n));
        for (int64_t k = 0; k < n; k++)
            sum += v[k] * (double)(k % 97 + i + 1);
        free(v);
    }
    et_leaves_release(&l);
    return sum;
}

static double
bound_sum(uint32_t seed)
{
    struct et_model *m = make("lenet");
    struct et_param_space *space;
    need(cx, et_model_bind_space(m, dev, seed, &space));
    double sum = sum_of(m, seed);
    et_param_space_free(&space);
    et_model_free(&m);
    return sum;
}

static void
spaces(void)
{
    struct et_model *m = make("lenet");
    struct et_param_space *space;
    struct et_leaves l;
    int wrong = 0;
    need(cx, et_module_bind(cx, m->root, dev, ET_PARAM | ET_BUFFER, 5));
    const double five = sum_of(m, 5);
    et_model_free(&m);
    ok(bound_sum(5) == five && bound_sum(6) != five && bound_sum(6) == bound_sum(6),
       "parameters of a space are those of its seed");
    m = make("lenet");
    need(cx, et_module_leaves(cx, m->root, ET_PARAM, &l));
    l.v[1].param->requires_grad = l.v[4].param->requires_grad = false;
    need(cx, et_model_bind_space(m, dev, 5, &space));
    for (int i = 0; i < space->n; i++)
        wrong += space->slot[i].frozen != (i == 1 || i == 4) ||
                 strcmp(space->slot[i].name, l.v[i].name) != 0;
    ok(wrong == 0 && space->n == l.n, "those that are frozen are frozen there");
    et_leaves_release(&l);
    et_param_space_free(&space);
    et_model_free(&m);
}

int
main(void)
{
    cx = need_ctx();
    need(cx, et_device_open(cx, "ref", 0, 0, &dev));
    resnet9();
    languages();
    kinds();
    spaces();
    et_device_close(&dev);
    et_ctx_free(&cx);
    return done();
}
