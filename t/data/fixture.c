/* SPDX-License-Identifier: Apache-2.0 */
/* fixture.c: see fixture.h. */
#include "config.h"

#include "t/data/fixture.h"

#include <ftw.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>
#include <zlib.h>

#include "core/base/seams.h"
#include "core/data/fields.h"
#include "t/tap.h"

struct et_ctx *
need_ctx(void)
{
    struct et_ctx *cx;
    if (et_ctx_new(&cx) != ET_OK)
        bail("no context");
    return cx;
}

void
need(struct et_ctx *cx, et_status status)
{
    if (status != ET_OK)
        bail("%s", et_error_get(cx)->message);
}

const char *
take_error(struct et_ctx *cx)
{
    static char text[1024];
    snprintf(text, sizeof text, "%s", et_error_get(cx)->message);
    et_error_clear(cx);
    return text;
}

static struct own_clock seconds;

static double
look(void)
{
    return seconds.now += seconds.step;
}

struct own_clock *
own_clock(struct et_ctx *cx)
{
    static struct eti_seams seams;
    if (eti_ctx_seams(cx) == &seams)
        return &seconds;
    seams = *eti_ctx_seams(cx);
    seams.monotonic = seams.wall = look;
    eti_ctx_set_seams(cx, &seams);
    seconds = (struct own_clock){.now = 1.83e9};
    return &seconds;
}

struct et_data_options
common_options(int64_t batch_size)
{
    return (struct et_data_options){
        .batch_size = batch_size,
        .subset_num_batches = -1,
        .shuffle = true,
        .workers = ET_INT_UNSET,
        .max_corrupt = 0.001,
        .seq_len = 4,
    };
}

static et_status
open_images(struct et_ctx *cx, struct et_dataset *self)
{
    const struct counted_options *o = self->options;
    (void)cx;
    et_facts_images(&self->facts, o->n, o->C, 6, 8, o->n);
    return ET_OK;
}

static et_status
read_sample(const struct et_dataset *self, int64_t at, struct et_sample *out,
            struct et_error *why)
{
    const struct counted_options *o = self->options;
    if (o->bad_every && at % o->bad_every == o->bad_every - 1) {
        snprintf(why->message, sizeof why->message, "img/%d.jpg: premature end",
                 (int)at);
        return ET_EFORMAT;
    }
    uint8_t *pixels = et_sample_room(out, ET_FIELD_X, (size_t)(6 * 8 * o->C));
    if (!pixels)
        return ET_ENOMEM;
    out->v[ET_FIELD_X].pixels = et_pixels_hwc(pixels, o->C, 6, 8);
    for (int i = 0; i < 6 * 8; i++)
        for (int c = 0; c < o->C; c++)
            *pixels++ = (uint8_t)(7 * at + i + 50 * c);
    et_sample_number(out, ET_FIELD_TARGET, (double)at);
    return ET_OK;
}

static const struct et_option transforms_table[] = {
    ET_DATA_IMAGE_OPTIONS(struct counted_options),
    {.name = NULL},
};

const struct et_dataset_class counted_images = {
    .info = {.name = "counted_images",
             .options = transforms_table,
             .options_size = sizeof(struct counted_options)},
    .open = open_images,
    .sample = read_sample,
};

struct counted_loader
counted_loader(struct et_ctx *cx, int64_t n, int64_t batch_size, int C,
               const char *transforms)
{
    struct counted_loader l = {
        .options = {.common = common_options(batch_size), .n = n, .C = C},
        .config = {.seed = 17, .train = true},
    };
    l.options.common.shuffle = false;
    if (transforms)
        need(cx, et_options_set(cx, transforms_table, &l.options, "transforms",
                                transforms));
    return l;
}

et_status
counted_begin(struct et_ctx *cx, struct counted_loader *l)
{
    need(cx, et_dataset_open(cx, &counted_images, &l->options, &l->data));
    return et_loader_new(cx, l->data, &l->config, &l->loader);
}

const struct et_batch *
counted_next(struct et_ctx *cx, struct counted_loader *l)
{
    const struct et_batch *b;
    need(cx, et_loader_next(cx, l->loader, &b));
    return b;
}

void
counted_end(struct counted_loader *l)
{
    et_loader_free(&l->loader);
    et_dataset_close(&l->data);
    et_options_release(transforms_table, &l->options);
}

static et_status
open_tokens(struct et_ctx *cx, struct et_dataset *self)
{
    const struct counted_options *o = self->options;
    (void)cx;
    et_facts_stream(&self->facts, o->n, o->n);
    return ET_OK;
}

static et_status
read_tokens(const struct et_dataset *self, int64_t at, int64_t n, int32_t *out,
            struct et_error *why)
{
    if (at < 0 || at + n > self->facts.n_tokens) {
        snprintf(why->message, sizeof why->message, "tokens [%d, %d) of %d", (int)at,
                 (int)(at + n), (int)self->facts.n_tokens);
        return ET_EINTERNAL;
    }
    for (int64_t i = 0; i < n; i++)
        out[i] = (int32_t)(at + i);
    return ET_OK;
}

const struct et_dataset_class counted_tokens = {
    .info = {.name = "counted_tokens", .options_size = sizeof(struct counted_options)},
    .open = open_tokens,
    .tokens = read_tokens,
};

struct et_pixels
raw_image(const struct et_dataset *data, int64_t at, int32_t *label)
{
    static struct eti_room room;
    static struct et_sample s;
    struct et_error why = {0};
    bool broken;
    eti_room_free(&room);
    if (eti_sample_read(data, at, NULL, &room, &s, &why, &broken) != ET_OK)
        bail("%s", why.message);
    if (label)
        *label = *(const int32_t *)s.v[ET_FIELD_TARGET].data;
    return s.v[ET_FIELD_X].pixels;
}

static char folder[256];

static int
remove_one(const char *path, const struct stat *st, int kind, struct FTW *where)
{
    (void)st;
    (void)kind;
    (void)where;
    (void)remove(path); /* what stays, stays: the test is over */
    return 0;
}

static pid_t maker;

static void
remove_folder(void)
{
    if (getpid() == maker) /* a process that was forked leaves it to its parent */
        nftw(folder, remove_one, 16, FTW_DEPTH | FTW_PHYS);
}

const char *
scratch_folder(void)
{
    if (!folder[0]) {
        const char *root = getenv("TMPDIR");
        snprintf(folder, sizeof folder, "%s/etude-t-XXXXXX", root ? root : "/tmp");
        if (!mkdtemp(folder))
            bail("cannot make %s", folder);
        maker = getpid();
        atexit(remove_folder);
    }
    return folder;
}

const char *
write_file(const char *name, const void *bytes, size_t n, bool zipped)
{
    static char path[600];
    snprintf(path, sizeof path, "%s/%s", scratch_folder(), name);
    gzFile f = gzopen(path, zipped ? "wb" : "wbT");
    if (!f || (n && gzwrite(f, bytes, (unsigned)n) != (int)n) || gzclose(f) != Z_OK)
        bail("cannot write %s", path);
    return path;
}

size_t
make_npy(uint8_t *out, const char *type, const char *shape, const void *bytes, size_t n)
{
    char header[128];
    int length =
        snprintf(header, sizeof header,
                 "{'descr': '%s', 'fortran_order': False, 'shape': %s, }", type, shape);
    memset(header + length, ' ', sizeof header - (size_t)length);
    header[117] = '\n';
    memcpy(out, "\x93NUMPY\1\0\x76\0", 10);
    memcpy(out + 10, header, 118);
    memcpy(out + 128, bytes, n);
    return 128 + n;
}

void
write_mds(const char *where, const char *encoding, int n, const void *const *sample,
          const uint32_t *size)
{
    char index[1024], name[700];
    uint32_t at = 4 + 4 * ((uint32_t)n + 1);
    snprintf(name, sizeof name, "%s/shard.00000.mds", where);
    FILE *f = fopen(name, "w");
    if (!f)
        bail("cannot write %s", name);
    fwrite(&n, 4, 1, f);
    for (int i = 0; i <= n; i++) {
        fwrite(&at, 4, 1, f);
        at += i < n ? 4 + size[i] : 0;
    }
    for (int i = 0; i < n; i++) {
        fwrite(&size[i], 4, 1, f);
        fwrite(sample[i], 1, size[i], f);
    }
    if (fclose(f) != 0)
        bail("cannot write %s", name);
    int used = snprintf(index, sizeof index,
                        "{\"version\": 2, \"shards\": [{\"version\": 2, \"format\": "
                        "\"mds\", \"samples\": %d, \"compression\": null, "
                        "\"zip_data\": null, \"raw_data\": {\"basename\": "
                        "\"shard.00000.mds\", \"bytes\": %u}, \"column_names\": "
                        "[\"text\"], \"column_encodings\": [\"%s\"], "
                        "\"column_sizes\": [null]}]}",
                        n, at, encoding);
    snprintf(name, sizeof name, "%s/index.json", where);
    f = fopen(name, "w");
    if (!f || fwrite(index, 1, (size_t)used, f) != (size_t)used || fclose(f) != 0)
        bail("cannot write %s", name);
}
