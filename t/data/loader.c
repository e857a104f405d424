/* SPDX-License-Identifier: Apache-2.0 */
/* The loader: order, ranks, resumption, workers, windows, skipped samples, memory. */
#include <math.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "core/data/order.h"
#include "core/graph/tensor.h"
#include "t/data/fixture.h"
#include "t/tap.h"

static struct et_ctx *cx;

struct setup {
    struct counted_options options;
    struct et_loader_config config;
    const struct et_dataset_class *type;
    struct et_dataset *data;
    struct et_loader *loader;
};

static struct setup
images(int64_t n, int64_t batch_size)
{
    return (struct setup){
        .options = {.common = common_options(batch_size), .n = n, .C = 1},
        .config = {.seed = 17, .train = true},
        .type = &counted_images,
    };
}

static struct setup
tokens(int64_t n, int64_t batch_size)
{
    struct setup s = images(n, batch_size);
    s.type = &counted_tokens;
    return s;
}

static void
begin(struct setup *s)
{
    need(cx, et_dataset_open(cx, s->type, &s->options, &s->data));
    need(cx, et_loader_new(cx, s->data, &s->config, &s->loader));
}

static void
end(struct setup *s)
{
    et_loader_free(&s->loader);
    et_dataset_close(&s->data);
}

static const struct et_batch *
next(struct setup *s)
{
    const struct et_batch *b;
    need(cx, et_loader_next(cx, s->loader, &b));
    return b;
}

/* A number that changes with any bit of the next N batches and where epochs end. */
static uint64_t
digest(struct setup *s, int n)
{
    uint64_t h = 14695981039346656037u;
    for (int k = 0; k < n; k++) {
        const struct et_batch *b = next(s);
        if (!b) {
            h = (h ^ 0xff) * 1099511628211u;
            continue;
        }
        const unsigned char *parts[] = {b->field[0].host.any, b->field[1].host.any,
                                        (void *)&b->n_samples, (void *)&b->first};
        size_t bytes[] = {et_desc_bytes(&b->field[0].desc),
                          et_desc_bytes(&b->field[1].desc), 8, 8};
        for (int p = 0; p < 4; p++)
            for (size_t i = 0; i < bytes[p]; i++)
                h = (h ^ parts[p][i]) * 1099511628211u;
        et_loader_release(s->loader, b);
    }
    return h;
}

static void
orders(void)
{
    static const int64_t sizes[] = {1, 2, 3, 5, 31, 64, 65, 1000, 60000};
    for (size_t k = 0; k < sizeof sizes / sizeof *sizes; k++) {
        int64_t n = sizes[k], once = 0, fixed = 0;
        char *seen = calloc((size_t)n, 1);
        struct eti_order o;
        eti_order_init(&o, n, 17, 3);
        for (int64_t i = 0; i < n; i++) {
            int64_t at = eti_order_at(&o, i);
            once += at >= 0 && at < n && !seen[at]++;
            fixed += at == i;
        }
        is_int(once, n, "an order of %d samples holds each once", (int)n);
        if (n >= 1000)
            ok(fixed < 10, "and leaves hardly any in place (%d)", (int)fixed);
        free(seen);
    }

    /* Where each of 5 samples goes over many epochs, and all 24 orders of 4: each cell
     * is within five standard deviations of even. */
    enum { EPOCHS = 24000 };
    int place[5][5] = {{0}}, order24[256] = {0}, worst = 0, n_orders = 0, odd = 0;
    for (int e = 0; e < EPOCHS; e++) {
        struct eti_order five, four;
        eti_order_init(&five, 5, 1, e);
        eti_order_init(&four, 4, 2, e);
        int code = 0;
        for (int i = 0; i < 5; i++)
            place[i][eti_order_at(&five, i)]++;
        for (int i = 0; i < 4; i++)
            code = code * 4 + (int)eti_order_at(&four, i);
        order24[code]++;
    }
    for (int i = 0; i < 25; i++)
        worst = abs(place[i / 5][i % 5] - EPOCHS / 5) > worst
                    ? abs(place[i / 5][i % 5] - EPOCHS / 5)
                    : worst;
    ok(worst < 5 * sqrt(EPOCHS * 0.2 * 0.8),
       "every sample is as likely at every place (%d off)", worst);
    for (int i = 0; i < 256; i++) {
        n_orders += order24[i] > 0;
        odd += order24[i] && fabs(order24[i] - EPOCHS / 24.0) > 5 * sqrt(EPOCHS / 24.0);
    }
    is_int(n_orders, 24, "all orders of four samples occur");
    is_int(odd, 0, "and each as often as the others");
}

static void
coverage(void)
{
    struct setup s = images(103, 10);
    begin(&s);
    int seen[103] = {0}, sizes = 0;
    const struct et_batch *b;
    while ((b = next(&s))) {
        for (int i = 0; i < b->n_samples; i++)
            seen[b->field[1].host.i32[i]]++;
        sizes += b->n_samples == (b->batch == 10 ? 3 : 10);
        is_int(b->first, 10 * b->batch, "batch %d begins at its place", (int)b->batch);
        et_loader_release(s.loader, b);
    }
    int once = 0;
    for (int i = 0; i < 103; i++)
        once += seen[i] == 1;
    is_int(once, 103, "an epoch shows every sample once");
    is_int(sizes, 11, "all batches are full but the last");
    b = next(&s);
    ok(b->epoch == 1 && b->batch == 0 && b->first == 103,
       "after the end comes the next epoch, and places count on");
    et_loader_release(s.loader, b);
    end(&s);

    s = images(103, 10);
    s.options.common.drop_last = true;
    begin(&s);
    struct et_loader_info info;
    et_loader_get_info(s.loader, &info);
    ok(info.batches_per_epoch == 10 && info.samples_per_epoch == 100,
       "drop_last leaves the incomplete batch out");
    end(&s);
    s.options.common.subset_num_batches = 3;
    begin(&s);
    et_loader_get_info(s.loader, &info);
    int n = 0;
    while ((b = next(&s))) {
        n++;
        et_loader_release(s.loader, b);
    }
    ok(n == 3 && info.batches_per_epoch == 3 && info.samples_per_epoch == 30,
       "subset_num_batches ends an epoch early");
    end(&s);

    s = images(4, 10);
    s.options.common.shuffle = false;
    begin(&s);
    b = next(&s);
    ok(b->n_samples == 4 && b->field[1].host.i32[0] == 0 &&
           b->field[1].host.i32[3] == 3,
       "without shuffle samples come as they are stored");
    is_near(b->field[0].host.f32[2 * 48 + 9], (2 * 7 + 9) / 255.0, 1e-6,
            "pixels are bytes over 255 where nothing normalises them");
    et_loader_release(s.loader, b);
    end(&s);
}

static void
determinism(void)
{
    struct setup s = images(103, 10);
    begin(&s);
    uint64_t want = digest(&s, 40), other;
    end(&s);
    for (int workers = 0; workers <= 4; workers++) {
        s.options.common.workers = workers;
        begin(&s);
        other = digest(&s, 40);
        ok(other == want, "%d workers give the same batches in the same order",
           workers);
        end(&s);
    }
    s.config.seed = 18;
    begin(&s);
    ok(digest(&s, 40) != want, "another seed gives another order");
    end(&s);
    s.config.seed = 17;

    for (int workers = 0; workers <= 2; workers += 2) {
        s.options.common.workers = workers;
        for (int start = 0; start <= 10; start += 5) {
            begin(&s);
            digest(&s, 12 + start); /* through epoch 0 and its end */
            want = digest(&s, 20);
            end(&s);
            begin(&s);
            digest(&s, 1);
            need(cx, et_loader_seek(cx, s.loader, 1, start));
            ok(digest(&s, 20) == want,
               "a start at batch %d of epoch 1 gives what would have "
               "come there, %d workers",
               start, workers);
            end(&s);
        }
    }
    begin(&s);
    is_int(et_loader_seek(cx, s.loader, 0, 12), ET_EINVAL,
           "there is no batch 12 of 11");
    is_str(take_error(cx), "epoch 0, batch 12 does not exist: an epoch has 11 batches",
           "and the sentence says so");
    end(&s);
}

static void
ranks(void)
{
    int seen[103] = {0}, disjoint = 0;
    struct setup whole = images(103, 12), part[3];
    begin(&whole);
    for (int r = 0; r < 3; r++) {
        part[r] = images(103, 12);
        part[r].config.world_size = 3;
        part[r].config.rank = r;
        begin(&part[r]);
    }
    const struct et_batch *w;
    int same = 0;
    while ((w = next(&whole))) {
        int64_t at = 0;
        for (int r = 0; r < 3; r++) {
            const struct et_batch *b = next(&part[r]);
            for (int i = 0; i < b->n_samples; i++, at++) {
                same += b->field[1].host.i32[i] == w->field[1].host.i32[at] &&
                        b->first + i == w->first + at;
                seen[b->field[1].host.i32[i]]++;
            }
            et_loader_release(part[r].loader, b);
        }
        et_loader_release(whole.loader, w);
    }
    for (int i = 0; i < 103; i++)
        disjoint += seen[i] == 1;
    is_int(same, 103,
           "ranks side by side hold the batch that one alone holds, in order");
    is_int(disjoint, 103, "and no sample twice");
    end(&whole);
    for (int r = 0; r < 3; r++)
        end(&part[r]);

    /* Two samples are left for the three of them. */
    int counted = 0, spare = 0;
    for (int r = 0; r < 3; r++) {
        struct setup few = images(14, 12);
        few.config.world_size = 3;
        few.config.rank = r;
        begin(&few);
        need(cx, et_loader_seek(cx, few.loader, 0, 1));
        const struct et_batch *b = next(&few);
        ok(b->n_samples == 1 && b->all_samples == 2 && b->first >= 12 && b->first < 14,
           "rank %d has a sample of a batch that is too small for all", r);
        counted += !b->spare;
        spare += b->spare;
        et_loader_release(few.loader, b);
        end(&few);
    }
    ok(counted == 2 && spare == 1, "... and one of them counts nothing");

    struct setup s = images(103, 100);
    s.config.world_size = 8;
    need(cx, et_dataset_open(cx, s.type, &s.options, &s.data));
    is_int(et_loader_new(cx, s.data, &s.config, &s.loader), ET_EINVAL,
           "a batch must divide by the ranks");
    is_str(take_error(cx), "batch 100 is not divisible by 8 ranks",
           "and the sentence says so");
    end(&s);
}

static void
windows(void)
{
    struct setup s = tokens(42, 3);
    s.config.train = false;
    s.options.common.shuffle = false;
    begin(&s);
    const struct et_batch *b = next(&s);
    const int32_t *x = b->field[0].host.any;
    ok(b->field[0].desc.shape[0] == 3 && b->field[0].desc.shape[1] == 4 &&
           b->n_tokens == 12,
       "three windows of four tokens are twelve tokens");
    int shifted = 0, tiles = 0;
    for (int i = 0; i < 12; i++) {
        shifted += b->field[1].host.i32[i] == x[i] + 1;
        tiles += x[i] == i;
    }
    is_int(shifted, 12, "targets are the next tokens");
    is_int(tiles, 12, "windows tile the text from its beginning to evaluate");
    et_loader_release(s.loader, b);
    int n = 3;
    while ((b = next(&s))) {
        n += (int)b->n_samples;
        et_loader_release(s.loader, b);
    }
    is_int(n, 10, "42 tokens hold 10 windows of 4 and a target each");
    end(&s);

    /* 44 tokens leave three places more for the first window of 10. */
    s = tokens(44, 3);
    s.config.train = false;
    s.options.common.shuffle = false;
    begin(&s);
    int begun = 0;
    for (int epoch = 0; epoch < 20; epoch++) {
        b = next(&s);
        begun += b->field[0].host.i32[0] == 0;
        do
            et_loader_release(s.loader, b);
        while ((b = next(&s)));
    }
    is_int(begun, 20, "and each evaluation has the same ones");
    end(&s);

    s = tokens(42, 3);
    begin(&s);
    int phases[4] = {0}, twice = 0;
    for (int epoch = 0; epoch < 40; epoch++) {
        int predicted[43] = {0};
        while ((b = next(&s))) {
            phases[b->field[0].host.i32[0] % 4]++;
            for (int i = 0; i < b->n_tokens; i++)
                twice += predicted[b->field[1].host.i32[i]]++ > 0;
            et_loader_release(s.loader, b);
        }
    }
    ok(phases[0] && phases[1] && phases[2] && phases[3],
       "windows begin at every phase over the epochs of training");
    is_int(twice, 0, "and none predicts a token twice in an epoch");
    end(&s);

    s = tokens(5, 3);
    begin(&s);
    b = next(&s);
    ok(b->n_samples == 1 && b->field[1].host.i32[3] == 4,
       "a text of T + 1 tokens is one window");
    et_loader_release(s.loader, b);
    end(&s);
    s = tokens(4, 3);
    is_int(et_dataset_open(cx, s.type, &s.options, &s.data), ET_EFORMAT,
           "a text of T tokens is too short");
    is_str(take_error(cx), "counted_tokens: 4 tokens (train) but seq_len 4 needs 5",
           "and the sentence says so");
}

static void
last_line(void *data, enum et_log_level level, const char *text)
{
    if (level == ET_LOG_WARN)
        snprintf(data, 256, "%s", text);
}

static void
corrupt(void)
{
    char line[256] = "";
    et_ctx_set_log(cx, ET_LOG_WARN, last_line, line);
    for (int workers = 0; workers <= 2; workers += 2) {
        struct setup s = images(100, 10);
        s.options.bad_every = 50;
        s.options.common.workers = workers;
        s.options.common.max_corrupt = 0.02;
        begin(&s);
        int doubled[101] = {0};
        const struct et_batch *b;
        for (int epoch = 0; epoch < 2; epoch++)
            while ((b = next(&s))) {
                for (int i = 0; i < b->n_samples; i++)
                    doubled[b->field[1].host.i32[i]]++;
                et_loader_release(s.loader, b);
            }
        struct et_loader_info info;
        et_loader_get_info(s.loader, &info);
        is_int(info.corrupt, 2, "unreadable samples count once, %d workers", workers);
        ok(!doubled[49] && doubled[50] == 4 && doubled[0] == 4,
           "and the next readable one takes their place");
        ok(strstr(line, "premature end (sample ") &&
               strstr(line, " skipped, 2 of 2 allowed)"),
           "a warning names them: %s", line);
        end(&s);

        s.options.common.max_corrupt = 0.01;
        begin(&s);
        et_status status = ET_OK;
        while (status == ET_OK) {
            status = et_loader_next(cx, s.loader, &b);
            et_loader_release(s.loader, b);
        }
        is_int(status, ET_EFORMAT, "one more than allowed ends the run, %d workers",
               workers);
        ok(strstr(take_error(cx), "1 already skipped of 1 allowed"),
           "and the sentence says so");
        is_int(et_loader_next(cx, s.loader, &b), ET_EFORMAT,
               "and again when asked again");
        et_error_clear(cx);
        end(&s);
    }
    et_ctx_set_log(cx, ET_LOG_WARN, NULL, NULL);
}

static void
memory(void)
{
    for (int workers = 0; workers <= 2; workers += 2) {
        struct setup s = images(103, 10);
        s.options.common.workers = workers;
        begin(&s);
        struct et_alloc_stats before, after;
        et_alloc_get_stats(cx, &before);
        digest(&s, 50);
        et_alloc_get_stats(cx, &after);
        is_int((int64_t)(after.allocs - before.allocs), 0,
               "fifty batches allocate nothing, %d workers", workers);
        const struct et_batch *a = next(&s), *b = next(&s), *c;
        int32_t was = a->field[1].host.i32[0];
        is_int(et_loader_next(cx, s.loader, &c), ET_EINVAL,
               "no more than two batches are held");
        is_str(take_error(cx), "2 batches are held: release one first",
               "and the sentence says so");
        et_loader_release(s.loader, b);
        for (int i = 0; i < 20; i++) {
            c = next(&s);
            et_loader_release(s.loader, c);
        }
        is_int(a->field[1].host.i32[0], was,
               "a held batch stays as it is while others come and go");
        et_loader_release(s.loader, a);
        end(&s);

        struct et_alloc_stats none;
        et_alloc_get_stats(cx, &none);
        is_int((int64_t)none.live, 0, "all memory is given back");
        int failures = 0;
        for (int k = 1; k < 100; k++) {
            et_alloc_fail_at(cx, (uint64_t)k);
            et_status status = et_dataset_open(cx, s.type, &s.options, &s.data);
            if (status == ET_OK)
                status = et_loader_new(cx, s.data, &s.config, &s.loader);
            end(&s);
            et_error_clear(cx);
            et_alloc_get_stats(cx, &none);
            if (none.live)
                break;
            if (status == ET_OK)
                break;
            failures += status == ET_ENOMEM;
        }
        et_alloc_fail_at(cx, 0);
        ok(failures > 5 && !none.live, "and whichever allocation fails (%d of them)",
           failures);
    }
}

static void
tensors(void)
{
    struct setup s = images(23, 10);
    need(cx, et_device_open(cx, "ref", 0, 1, &s.config.dev));
    begin(&s);
    uint64_t want = digest(&s, 8);
    end(&s);
    for (int workers = 0; workers <= 2; workers += 2) {
        s.options.common.workers = workers;
        begin(&s);
        int sound = 0;
        const struct et_batch *b;
        while ((b = next(&s))) {
            sound += et_tensor_data(b->field[0].tensor) == b->field[0].host.any &&
                     et_tensor_data(b->field[1].tensor) == b->field[1].host.any &&
                     et_desc_equal(&b->field[0].tensor->desc, &b->field[0].desc) &&
                     et_desc_equal(&b->field[1].tensor->desc, &b->field[1].desc) &&
                     b->field[0].desc.shape[0] == b->n_samples;
            et_loader_release(s.loader, b);
        }
        is_int(sound, 3,
               "batches are tensors of the device, the short one too, %d workers",
               workers);
        need(cx, et_loader_seek(cx, s.loader, 0, 0));
        ok(digest(&s, 8) == want, "with the same contents");
        end(&s);
    }
    et_device_close(&s.config.dev);
}

/* The same memory on the device, which the host cannot reach. */
static bool
arrived(const struct et_tensor *t, const void *host)
{
    size_t bytes = et_desc_bytes(&t->desc);
    void *copy = malloc(bytes);
    need(cx, eti_tensor_copy_out(cx, t, copy));
    bool same = memcmp(copy, host, bytes) == 0;
    free(copy);
    return same;
}

/* Steps in flight, as a trainer's are: each batch is released before it is looked
 * at. */
static void
uploads(void)
{
    struct setup s = images(23, 10);
    if (et_device_open(cx, "gpusim", 0, 1, &s.config.dev) != ET_OK) {
        et_error_clear(cx);
        skip(2, "the simulated GPU is not built");
        return;
    }
    for (int workers = 0; workers <= 2; workers += 2) {
        s.options.common.workers = workers;
        begin(&s);
        int sound = 0;
        for (int epoch = 0; epoch < 4; epoch++) {
            const struct et_batch *b;
            while ((b = next(&s))) {
                sound += arrived(b->field[0].tensor, b->field[0].host.any) &&
                         arrived(b->field[1].tensor, b->field[1].host.any) &&
                         et_desc_equal(&b->field[0].tensor->desc, &b->field[0].desc);
                et_loader_release(s.loader, b);
            }
        }
        is_int(sound, 12, "batches arrive in a GPU's memory, %d workers", workers);
        end(&s);
    }
    et_device_close(&s.config.dev);
}

/* A gate before every sample. */
static struct {
    pthread_mutex_t lock;
    pthread_cond_t change;
    bool shut;
    int before, calls; /* threads that wait at it; all that came to it */
} gate = {.lock = PTHREAD_MUTEX_INITIALIZER, .change = PTHREAD_COND_INITIALIZER};

static et_status
gated_image(const struct et_dataset *self, int64_t at, struct et_sample *out,
            struct et_error *why)
{
    pthread_mutex_lock(&gate.lock);
    gate.before++;
    gate.calls++;
    pthread_cond_broadcast(&gate.change);
    while (gate.shut)
        pthread_cond_wait(&gate.change, &gate.lock);
    gate.before--;
    pthread_mutex_unlock(&gate.lock);
    return counted_images.sample(self, at, out, why);
}

static void
set_gate(bool shut)
{
    pthread_mutex_lock(&gate.lock);
    gate.shut = shut;
    pthread_cond_broadcast(&gate.change);
    pthread_mutex_unlock(&gate.lock);
}

/* Does *COUNT become N? It has 20 s. */
static bool
becomes(const int *count, int n)
{
    struct timespec end;
    int code = 0;
    clock_gettime(CLOCK_REALTIME, &end);
    end.tv_sec += 20;
    pthread_mutex_lock(&gate.lock);
    while (*count != n && code == 0)
        code = pthread_cond_timedwait(&gate.change, &gate.lock, &end);
    pthread_mutex_unlock(&gate.lock);
    return code == 0;
}

/* Two workers have four places, two of which they are filling when the loader is set
 * elsewhere. */
static void
moves(void)
{
    enum { WORKERS = 2, PLACES = WORKERS + 2 };
    struct et_dataset_class gated = counted_images;
    struct setup s = images(100, 1);
    gated.sample = gated_image;
    s.type = &gated;
    s.options.common.workers = WORKERS;
    s.options.common.shuffle = false;
    begin(&s);
    const struct et_batch *b = next(&s);
    et_loader_release(s.loader, b);
    if (!becomes(&gate.calls, 1 + PLACES))
        bail("the places that were free did not fill");
    set_gate(true);
    need(cx, et_loader_seek(cx, s.loader, 0, 20));
    ok(becomes(&gate.before, WORKERS), "all workers are at a batch");
    need(cx, et_loader_seek(cx, s.loader, 0, 60));
    const int calls = gate.calls;
    set_gate(false);
    ok(becomes(&gate.calls, calls + PLACES),
       "what they were at when the loader was set elsewhere leaves its place");
    b = next(&s);
    ok(b && b->field[1].host.i32[0] == 60, "and the batch of the new place comes next");
    et_loader_release(s.loader, b);
    end(&s);
}

int
main(void)
{
    cx = need_ctx();
    orders();
    coverage();
    determinism();
    ranks();
    windows();
    corrupt();
    memory();
    tensors();
    uploads();
    moves();
    et_ctx_free(&cx);
    return done();
}
