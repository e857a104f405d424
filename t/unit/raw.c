/* SPDX-License-Identifier: Apache-2.0 */
/* Samples that a caller has in memory, as facts of data: those of the data that they
 * stand for, as far as they are given (core/assemble/raw.h). */
#include "core/assemble/raw.h"

#include <string.h>

#include "etude/etude.h"
#include "t/data/fixture.h"
#include "t/tap.h"

enum { N = 3, LENGTH = 8 };

static const struct et_dataset_class texts = {.info = {.name = "texts"}};
static const struct et_data_options options = {.seq_len = LENGTH};
static const int32_t tokens[N * LENGTH], mask[N * LENGTH];
static const uint8_t kinds[N * LENGTH];

static const struct et_field tokens_field = {
    .name = "tokens",
    .kind = ET_FIELD_TOKENS,
    .dtype = ET_I32,
    .ndim = 1,
    .shape = {-1},
    .below = 11,
};
static const struct et_field kinds_field = {
    .name = "token_type",
    .kind = ET_FIELD_TOKENS,
    .dtype = ET_U8,
    .ndim = 1,
    .shape = {-1},
    .below = 2,
};
static const struct et_field target_field = {
    .name = "target",
    .kind = ET_FIELD_TOKENS,
    .dtype = ET_I32,
    .ndim = 1,
    .shape = {-1},
    .below = 11,
};

/* Texts with a target of their length, or without one. */
static struct et_dataset
data_with(bool target)
{
    struct et_dataset d = {.type = &texts, .common = &options};
    et_facts_add(&d.facts, &tokens_field);
    if (target) {
        et_facts_add(&d.facts, &target_field);
        et_facts_add(&d.facts, &kinds_field);
        d.facts.wants_attention_mask = true;
    }
    return d;
}

static struct et_raw_field
given(const char *name, enum et_dtype dtype, const void *data)
{
    const int64_t shape[] = {N, LENGTH};
    struct et_raw_field f = {.name = name, .data = data};
    et_desc_init(&f.desc, dtype, 2, shape, ET_ROW_MAJOR);
    return f;
}

/* "tokens target ...": the fields of F. */
static const char *
names_of(const struct et_data_facts *f)
{
    static char text[128];
    text[0] = '\0';
    for (int i = 0; i < f->n_fields && i < ET_MAX_FIELDS; i++) {
        const char *name = f->field[i].name ? f->field[i].name : "(none)";
        size_t at = strlen(text);
        snprintf(text + at, sizeof text - at, "%s%s", i ? " " : "", name);
    }
    return text;
}

static void
test_mask(struct et_ctx *cx)
{
    const struct et_dataset like = data_with(true);
    const struct et_raw_field all[] = {given("tokens", ET_I32, tokens),
                                       given("token_type", ET_U8, kinds),
                                       given("attention_mask", ET_I32, mask)};
    const void *data[ET_MAX_FIELDS] = {0};
    struct et_data_facts facts;
    need(cx, eti_raw_take(cx, &like, all, 2, &facts, data));
    is_str(names_of(&facts), "tokens target token_type",
           "behind the first field stands the target, which nobody gives");
    ok(data[0] == tokens && !data[1] && data[2] == kinds, "each with its numbers");
    is_int(facts.field[ET_FIELD_TARGET].shape[0], LENGTH,
           "a target of any length is as long as the tokens");
    ok(facts.wants_attention_mask, "a mask that is not given is made of lengths");
    need(cx, eti_raw_take(cx, &like, all, 3, &facts, data));
    is_str(names_of(&facts), "tokens target token_type attention_mask",
           "a mask may be given");
    ok(data[3] == mask && !facts.wants_attention_mask, "and none is made then");
}

static void
test_no_target(struct et_ctx *cx)
{
    const struct et_dataset like = data_with(false);
    const struct et_raw_field one[] = {given("tokens", ET_I32, tokens)};
    const void *data[ET_MAX_FIELDS] = {0};
    struct et_data_facts facts;
    need(cx, eti_raw_take(cx, &like, one, 1, &facts, data));
    is_str(names_of(&facts), "tokens", "data without a target get none");
    is_int(facts.n_samples, N, "and have as many samples as are given");
}

int
main(void)
{
    struct et_ctx *cx = need_ctx();
    test_mask(cx);
    test_no_target(cx);
    et_ctx_free(&cx);
    return done();
}
