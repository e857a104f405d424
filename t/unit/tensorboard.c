/* SPDX-License-Identifier: Apache-2.0 */
/* The logger for TensorBoard, read back by a decoder that shares nothing with it: bits
 * of CRC-32C one at a time, protocol buffers field by field. */
#include <dirent.h>
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "t/data/fixture.h"
#include "t/tap.h"
#include "t/train/fixture.h"

/* ---- the decoder ---- */

enum { MAX_VALUES = 4096, MAX_FILES = 8 };

struct value {
    char tag[128];
    int64_t step;
    double t;
    float number;
    int text_bytes; /* -1: a number */
    char text[64];  /* its beginning */
};

struct file {
    int records, damaged, starts, n;
    int64_t start; /* step of the last */
    char version[32];
    struct value value[MAX_VALUES];
};

static uint32_t
crc(const unsigned char *p, size_t n)
{
    uint32_t c = 0xffffffff;
    for (size_t i = 0; i < 8 * n; i++) {
        uint32_t bit = (c ^ (uint32_t)p[i / 8] >> i % 8) & 1;
        c = c >> 1 ^ (bit ? 0x82f63b78 : 0);
    }
    return ~c;
}

static uint64_t
little(const unsigned char *p, int n)
{
    uint64_t x = 0;
    for (int i = 0; i < n; i++)
        x |= (uint64_t)p[i] << 8 * i;
    return x;
}

static bool
is_masked(uint64_t stored, const unsigned char *p, size_t n)
{
    uint32_t rotated = (uint32_t)stored - 0xa282ead8;
    return crc(p, n) == (rotated >> 17 | rotated << 15);
}

/* A field of a message. */
struct field {
    int number, kind;
    uint64_t x;             /* kinds 0, 1, 5 */
    const unsigned char *p; /* kind 2: N bytes */
    size_t n;
};

static uint64_t
varint(const unsigned char **p, const unsigned char *end)
{
    uint64_t x = 0;
    for (int shift = 0; *p < end && shift < 64; shift += 7) {
        unsigned char c = *(*p)++;
        x |= (uint64_t)(c & 0x7f) << shift;
        if (c < 0x80)
            break;
    }
    return x;
}

static bool
next(const unsigned char **p, const unsigned char *end, struct field *f)
{
    if (*p >= end)
        return false;
    uint64_t key = varint(p, end);
    *f = (struct field){.number = (int)(key >> 3), .kind = (int)(key & 7)};
    int width = f->kind == 1 ? 8 : f->kind == 5 ? 4 : 0;
    if (f->kind == 0) {
        f->x = varint(p, end);
    } else if (f->kind == 2) {
        f->n = varint(p, end);
        f->p = *p;
        *p += f->n;
    } else {
        f->x = little(*p, width);
        *p += width;
    }
    if (*p > end)
        bail("a field runs past the end of its message");
    return true;
}

static void
copy(char *to, size_t size, const struct field *f)
{
    size_t n = f->n < size - 1 ? f->n : size - 1;
    memcpy(to, f->p, n);
    to[n] = '\0';
}

static void
read_value(struct value *v, const struct field *of)
{
    struct field f, g;
    v->text_bytes = -1;
    for (const unsigned char *p = of->p; next(&p, of->p + of->n, &f);) {
        if (f.number == 1)
            copy(v->tag, sizeof v->tag, &f);
        if (f.number == 2) {
            uint32_t bits = (uint32_t)f.x;
            memcpy(&v->number, &bits, sizeof bits);
        }
        for (const unsigned char *q = f.p; f.number == 8 && next(&q, f.p + f.n, &g);)
            if (g.number == 8) {
                v->text_bytes = (int)g.n;
                copy(v->text, sizeof v->text, &g);
            }
    }
}

static void
read_event(struct file *out, const unsigned char *data, size_t n)
{
    struct field f, g;
    double t = 0;
    int64_t step = 0;
    for (const unsigned char *p = data; next(&p, data + n, &f);) {
        if (f.number == 1)
            memcpy(&t, &f.x, sizeof t);
        if (f.number == 2)
            step = (int64_t)f.x;
        if (f.number == 3)
            copy(out->version, sizeof out->version, &f);
        for (const unsigned char *q = f.p; f.number == 5 && next(&q, f.p + f.n, &g);) {
            if (out->n == MAX_VALUES)
                bail("more than %d values", MAX_VALUES);
            read_value(&out->value[out->n], &g);
            out->value[out->n].step = step;
            out->value[out->n++].t = t;
        }
        for (const unsigned char *q = f.p; f.number == 7 && next(&q, f.p + f.n, &g);)
            if (g.number == 1 && g.x == 1) {
                out->starts++;
                out->start = step;
            }
    }
}

/* Reads PATH up to its end or a record that is not whole. */
static struct file *
read_file(const char *path)
{
    static unsigned char bytes[1 << 20];
    static struct file file;
    FILE *f = fopen(path, "r");
    size_t n = f ? fread(bytes, 1, sizeof bytes, f) : 0;
    memset(&file, 0, sizeof file);
    if (f)
        fclose(f);
    for (size_t at = 0; at + 12 <= n;) {
        uint64_t length = little(bytes + at, 8);
        if (length > n - at - 12 || n - at - 12 - length < 4)
            break;
        const unsigned char *data = bytes + at + 12;
        if (!is_masked(little(bytes + at + 8, 4), bytes + at, 8) ||
            !is_masked(little(data + length, 4), data, length)) {
            file.damaged++;
            break;
        }
        file.records++;
        read_event(&file, data, length);
        at += 16 + length;
    }
    return &file;
}

static const struct value *
find(const struct file *f, const char *tag, int64_t step)
{
    for (int i = 0; i < f->n; i++)
        if (f->value[i].step == step && strcmp(f->value[i].tag, tag) == 0)
            return &f->value[i];
    return NULL;
}

/* ---- the logger ---- */

static int
by_name(const void *a, const void *b)
{
    return strcmp(a, b);
}

/* The files in tb/, sorted as readers do. */
static int
list(char path[MAX_FILES][512])
{
    char folder[256];
    int n = 0;
    snprintf(folder, sizeof folder, "%s/tb", scratch_folder());
    DIR *d = opendir(folder);
    for (struct dirent *e; d && (e = readdir(d)) && n < MAX_FILES;)
        if (e->d_name[0] != '.')
            snprintf(path[n++], sizeof path[0], "%s/%s", folder, e->d_name);
    if (d)
        closedir(d);
    qsort(path, (size_t)n, sizeof path[0], by_name);
    return n;
}

static void
clean(void)
{
    char path[MAX_FILES][512], folder[256];
    for (int n = list(path); n > 0; n--)
        unlink(path[n - 1]);
    snprintf(folder, sizeof folder, "%s/tb", scratch_folder());
    rmdir(folder);
    snprintf(folder, sizeof folder, "%s/recipe.resolved.yaml", scratch_folder());
    unlink(folder);
}

static struct et_callback *
open_logger(struct et_ctx *cx, struct et_state *s, int64_t flush_interval)
{
    const struct et_callback_class *type = et_logger_find("tensorboard");
    struct et_callback *c;
    char text[32];
    const char *const set[] = {"flush_interval", text, NULL};
    void *options;
    snprintf(text, sizeof text, "%" PRId64, flush_interval);
    need(cx, et_options_new(cx, &type->info, set, &options));
    need(cx, et_callback_new(cx, type, options, scratch_folder(), &c));
    et_options_free(&type->info, &options);
    need(cx, type->run(c, ET_EVENT_AFTER_LOAD, s, s->log));
    return c;
}

static void
fire(struct et_callback *c, enum et_event event, struct et_state *s)
{
    need(s->cx, c->type->run(c, event, s, s->log));
    et_log_emit(s->log, ET_RECORD_BATCH, &s->timestamp, NULL);
}

static void
batch(struct et_callback *c, struct et_state *s, int64_t ba, double loss)
{
    s->timestamp.batch = ba;
    et_log_metric(s->log, "loss/train/total", loss);
    fire(c, ET_EVENT_BATCH_END, s);
}

static void
finish(struct et_callback **c)
{
    (*c)->type->close(*c);
    et_callback_free(c);
}

static void
test_values(struct et_ctx *cx, struct et_state s)
{
    char path[MAX_FILES][512];
    write_file("recipe.resolved.yaml", "max_duration: 1ep\n", 18, false);
    double now = (own_clock(cx)->now += 0.25);
    struct et_callback *c = open_logger(cx, &s, 100);
    batch(c, &s, 1, 0.1);
    et_log_metric(s.log, "not/a/number", NAN);
    et_log_metric(s.log, "less", -INFINITY);
    batch(c, &s, 3000000000, 2.5);
    et_log_metric(s.log, "metrics/eval/Accuracy", 0.75);
    fire(c, ET_EVENT_EVAL_END, &s);
    finish(&c);
    is_int(list(path), 1, "a run writes one file");
    ok(strstr(path[0], "/tb/events.out.tfevents.") != NULL,
       "under the name that readers look for");
    const struct file *f = read_file(path[0]);
    is_int(f->damaged, 0, "its records are whole, their checksums right");
    is_str(f->version, "brain.Event:2", "it says its format first");
    const struct value *v = find(f, "loss/train/total", 1);
    ok(v && v->number == 0.1f, "a number, as f32, at the step of its batch");
    ok(v && v->t == now, "and its time");
    v = find(f, "loss/train/total", 3000000000);
    ok(v && v->number == 2.5f, "a step past 32 bits");
    v = find(f, "not/a/number", 3000000000);
    ok(v && isnan(v->number), "NaN as NaN");
    v = find(f, "less", 3000000000);
    ok(v && v->number == -INFINITY, "infinity as infinity");
    v = find(f, "metrics/eval/Accuracy", 3000000000);
    ok(v && v->number == 0.75f, "evaluations too");
    v = find(f, "recipe", 0);
    is_str(v ? v->text : "", "    max_duration: 1ep\n",
           "the recipe is a text, as a block of code");
    v = find(f, "_hparams_/session_start_info", 0);
    ok(v != NULL, "its values are hyperparameters");
    is_int(f->n, 7, "and that is all");
    clean();
}

static void
test_resume(struct et_ctx *cx, struct et_state s)
{
    char path[MAX_FILES][512], first[512];
    struct et_callback *c = open_logger(cx, &s, 1);
    for (int ba = 1; ba <= 5; ba++)
        batch(c, &s, ba, ba);
    finish(&c);
    list(path);
    memcpy(first, path[0], sizeof first);
    s.timestamp.batch = 3; /* as a checkpoint had it */
    c = open_logger(cx, &s, 1);
    batch(c, &s, 4, 40);
    finish(&c);
    is_int(list(path), 2, "a run that is resumed adds a file");
    is_str(path[0], first,
           "that readers take after the first, even in the same second");
    const struct file *f = read_file(path[1]);
    is_int(f->starts, 1, "it says once that a session starts");
    is_int(f->start, 4, "from the first step that is repeated");
    const struct value *v = find(f, "loss/train/total", 4);
    ok(v && v->number == 40, "which follows");
    f = read_file(path[0]);
    ok(f->starts == 1 && f->start == 1,
       "a run's first file begins with its first step: readers ask for that");
    clean();
}

/* Batches of 20 numbers, until the system has something that no flush gave it. */
static void
fill_buffer(struct et_callback *c, struct et_state *s)
{
    char name[ET_METRIC_NAME];
    for (int ba = 5; ba < 105; ba++) {
        for (int i = 0; i < 20; i++) {
            snprintf(name, sizeof name, "a/metric/with/quite/a/long/name/%d", i);
            et_log_metric(s->log, name, i);
        }
        batch(c, s, ba, ba);
    }
}

static void
test_flush(struct et_ctx *cx, struct et_state s)
{
    char path[MAX_FILES][512];
    struct et_callback *c = open_logger(cx, &s, 3);
    list(path);
    ok(read_file(path[0])->records >= 1, "the file can be found at once");
    for (int ba = 1; ba <= 2; ba++)
        batch(c, &s, ba, ba);
    is_int(read_file(path[0])->n, 0, "flush_interval 3: two batches are kept back");
    batch(c, &s, 3, 3);
    const struct file *f = read_file(path[0]);
    ok(f->n == 3 && f->damaged == 0, "the third writes all of them, whole");
    batch(c, &s, 4, 4);
    fire(c, ET_EVENT_EPOCH_END, &s);
    is_int(read_file(path[0])->n, 4, "an epoch's end does");
    batch(c, &s, 5, 5);
    is_int(read_file(path[0])->n, 4, "likewise, until 30 s have passed");
    own_clock(cx)->now += 30;
    batch(c, &s, 6, 6);
    is_int(read_file(path[0])->n, 6, "then all are written");
    finish(&c);
    clean();
    c = open_logger(cx, &s, 1000);
    list(path);
    fill_buffer(c, &s);
    f = read_file(path[0]);
    ok(f->damaged == 0 && f->n > 500 && f->n < 2100,
       "what a crash would leave can be read as far as it goes");
    finish(&c);
    is_int(read_file(path[0])->n, 2100, "closing writes the rest");
    clean();
}

static void
test_many(struct et_ctx *cx, struct et_state s)
{
    char path[MAX_FILES][512], name[ET_METRIC_NAME];
    struct et_callback *c = open_logger(cx, &s, 1);
    struct et_alloc_stats before, after;
    memset(name, 'x', sizeof name);
    for (int i = 0; i < 512; i++) {
        snprintf(name + 80, sizeof name - 80, "%015d", i);
        et_log_metric(s.log, name, i);
    }
    s.timestamp.batch = 7;
    et_alloc_get_stats(cx, &before);
    need(cx, c->type->run(c, ET_EVENT_BATCH_END, &s, s.log));
    et_alloc_get_stats(cx, &after);
    is_int((int64_t)(after.allocs - before.allocs), 0, "a batch allocates nothing");
    finish(&c);
    list(path);
    const struct file *f = read_file(path[0]);
    is_int(f->n, 512, "512 long names are all there");
    const struct value *v = find(f, name, 7);
    ok(v && v->number == 511, "with their numbers and step");
    clean();
}

static void
test_refusal(struct et_ctx *cx, struct et_state s)
{
    struct et_callback *c;
    need(cx, et_callback_new(cx, et_logger_find("tensorboard"), NULL, NULL, &c));
    is_int(c->type->run(c, ET_EVENT_AFTER_LOAD, &s, s.log), ET_EINVAL,
           "no run directory, no file");
    et_error_clear(cx);
    finish(&c);
    need(cx,
         et_callback_new(cx, et_logger_find("tensorboard"), NULL, "no/such/place", &c));
    is_int(c->type->run(c, ET_EVENT_AFTER_LOAD, &s, s.log), ET_EIO,
           "nor in a place that is none");
    ok(strstr(take_error(cx), "no/such/place/tb") != NULL, "which is named");
    finish(&c);
}

int
main(void)
{
    struct et_ctx *cx = need_ctx();
    struct et_alloc_stats stats;
    struct run r;
    is_int(crc((const unsigned char *)"123456789", 9), 0xe3069283,
           "the decoder's checksum is RFC 3720's");
    run_open(&r, cx, &(struct run_setup){0});
    test_values(cx, *r.state);
    test_resume(cx, *r.state);
    test_flush(cx, *r.state);
    test_many(cx, *r.state);
    test_refusal(cx, *r.state);
    run_close(&r);
    et_alloc_get_stats(cx, &stats);
    is_int((int64_t)stats.live, 0, "nothing is left behind");
    et_ctx_free(&cx);
    return done();
}
