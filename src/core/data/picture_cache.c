/* SPDX-License-Identifier: Apache-2.0 */
/* picture_cache.c: see picture_cache.h.
 *
 * The file is a header, an entry for each sample, and their pixels: [h,w,C] and then,
 * where there are masks, [h,w] of the mask. A picture whose short side is above the
 * cache's size has it then, as resize_short makes it; smaller ones are as they are. A
 * sample that cannot be read has no entry, and is read from its file again, so that it
 * is named, counted and skipped as without a cache. */
#include "core/data/picture_cache.h"

#include <errno.h>
#include <inttypes.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <unistd.h>
#include <xxhash.h>

#include "core/base/memory.h"
#include "core/base/thread.h"
#include "core/data/cache.h"
#include "core/data/fields.h"
#include "core/data/file.h"
#include "core/image/view.h"

/* VERSION changes with the layout, and with what decoding and resizing give. */
enum { VERSION = 1, LOT = 16, ESTIMATE_OF = 512 };

struct header {
    char magic[8];
    uint64_t key; /* of files, times and options */
    int64_t n;
};
static const char magic[8] = "etudepic";

struct entry {
    int64_t offset;
    int32_t h, w; /* 0: it could not be read */
};

struct eti_picture_cache {
    struct eti_file file;
    struct entry *entry; /* [n]; owned */
    int C;
    bool masks;
};

/* ---- what a cache is of ---- */

/* HASH over the list; with TIMES over what may change in the files, too. */
static void
hash_list(struct et_dataset *self, int64_t size, bool times, XXH3_state_t *hash)
{
    const struct eti_picture_list *l = self->state;
    const int64_t facts[] = {VERSION, size, self->facts.field[0].shape[0], l->n,
                             l->mask != NULL};
    XXH3_64bits_update(hash, facts, sizeof facts);
    XXH3_64bits_update(hash, l->map, sizeof l->map);
    XXH3_64bits_update(hash, l->picture, (size_t)l->n * sizeof *l->picture);
    if (l->mask)
        XXH3_64bits_update(hash, l->mask, (size_t)l->n * sizeof *l->mask);
    XXH3_64bits_update(hash, l->files.text, (size_t)l->files.text_n);
    for (int64_t i = 0; times && i < l->files.n; i++) {
        struct stat st = {0};
        (void)stat(eti_string(&l->files, i), &st); /* a file that is missing: zeros */
        const int64_t is[] = {st.st_size, st.st_mtim.tv_sec, st.st_mtim.tv_nsec};
        XXH3_64bits_update(hash, is, sizeof is);
    }
}

static et_status
key_of(struct et_ctx *cx, struct et_dataset *self, int64_t size, bool times,
       uint64_t *out)
{
    XXH3_state_t *hash = XXH3_createState();
    if (!hash)
        return ET_FAIL(cx, ET_ENOMEM, "out of memory: a key of the cached pictures");
    XXH3_64bits_reset(hash);
    hash_list(self, size, times, hash);
    *out = XXH3_64bits_digest(hash);
    XXH3_freeState(hash);
    return ET_OK;
}

/* ---- one picture ---- */

/* What a thread needs to make entries. */
struct tools {
    struct eti_room room;
    struct eti_decoder decoder, mask;
    struct eti_looker looker;
    struct eti_scratch pixels;
};

static void
tools_free(struct tools *t)
{
    eti_room_free(&t->room);
    eti_decoder_free(&t->decoder);
    eti_decoder_free(&t->mask);
    eti_looker_free(&t->looker);
    eti_scratch_free(&t->pixels);
}

/* The size that pictures of h x w have in the cache: resize_short's rule. */
static void
kept_size(int64_t size, int64_t *h, int64_t *w)
{
    int64_t H = *h, W = *w;
    if ((H < W ? H : W) <= size)
        return;
    *h = H < W ? size : size * H / W;
    *w = H < W ? size * W / H : size;
}

static struct et_view
kept_view(int64_t size, int64_t H, int64_t W)
{
    struct et_view v = et_view_of(H, W);
    int64_t h = H, w = W;
    kept_size(size, &h, &w);
    if (h != H || w != W)
        et_view_resize(&v, h, w, ET_BILINEAR);
    return v;
}

/* Sample AT's files, and its picture's header; false: it cannot be read. */
static bool
read_header(const struct et_dataset *self, int64_t at, struct tools *t,
            struct et_sample *s)
{
    struct et_error why = {0};
    bool broken;
    if (eti_sample_read(self, at, NULL, &t->room, s, &why, &broken) != ET_OK)
        return false;
    const struct et_sample_value *v = &s->v[ET_FIELD_X];
    return eti_decoder_open(&t->decoder, v->data, (size_t)v->shape[0], &why) == ET_OK;
}

/* The mask of S, as large as its picture of H x W, behind the picture's pixels. */
static bool
look_at_mask(const struct et_dataset *self, int64_t at, const struct et_view *v,
             int64_t H, int64_t W, struct tools *t, struct et_sample *s, uint8_t *out)
{
    static const uint8_t outside[1] = {UINT8_MAX};
    struct et_error why = {0};
    bool broken;
    if (eti_sample_decode(self, at, ET_FIELD_TARGET, &t->mask, s, &why, &broken) !=
        ET_OK)
        return false;
    const struct et_pixels *mask = &s->v[ET_FIELD_TARGET].pixels;
    return mask->H == H && mask->W == W &&
           eti_view_look(&t->looker, v, mask, ET_NEAREST, outside, out, &why) == ET_OK;
}

/* Makes what is kept of sample AT: *BYTES of T's pixels. False: it cannot be read. */
static bool
make_entry(const struct et_dataset *self, int64_t at, int64_t size, struct tools *t,
           struct entry *e, size_t *bytes)
{
    static const uint8_t black[ET_MAX_CHANNELS];
    const struct eti_picture_list *l = self->state;
    int C = (int)self->facts.field[ET_FIELD_X].shape[0];
    struct et_error why = {0};
    struct et_sample s;
    struct eti_picture p;
    if (!read_header(self, at, t, &s))
        return false;
    int64_t H = t->decoder.info.H, W = t->decoder.info.W;
    struct et_view v = kept_view(size, H, W), of_mask = v;
    struct eti_picture_want want = eti_view_want(&v, C);
    size_t area = (size_t)(v.h * v.w);
    *bytes = area * (size_t)(C + (l->mask != NULL));
    if (eti_decoder_read(&t->decoder, &want, &p, &why) != ET_OK ||
        eti_scratch_need(&t->pixels, *bytes, &why) != ET_OK)
        return false;
    uint8_t *out = t->pixels.data;
    eti_view_onto(&v, &p);
    if (eti_view_look(&t->looker, &v, &p.pixels, v.filter, black, out, &why) != ET_OK)
        return false;
    if (l->mask &&
        !look_at_mask(self, at, &of_mask, H, W, t, &s, out + area * (size_t)C))
        return false;
    e->h = (int32_t)v.h;
    e->w = (int32_t)v.w;
    return true;
}

/* ---- making a cache ---- */

struct making {
    struct et_dataset *self;
    const struct eti_cache_options *o;
    uint64_t key;
    int fd;
    struct entry *entry;
    atomic_llong end;    /* of what is written: bytes */
    atomic_int failed;   /* errno of a write */
    atomic_llong unread; /* samples */
};

static int64_t
data_begin(int64_t n)
{
    return (int64_t)sizeof(struct header) + n * (int64_t)sizeof(struct entry);
}

static bool
write_at(int fd, const void *data, size_t n, int64_t offset)
{
    for (size_t at = 0; at < n;) {
        ssize_t put =
            pwrite(fd, (const char *)data + at, n - at, (off_t)offset + (off_t)at);
        if (put < 0 && errno == EINTR)
            continue;
        if (put <= 0)
            return false;
        at += (size_t)put;
    }
    return true;
}

static void
make_part(void *data, int64_t first, int64_t end)
{
    struct making *m = data;
    struct tools t = {.decoder = {.codec = NULL}};
    for (int64_t i = first; i < end && !atomic_load(&m->failed); i++) {
        struct entry e = {0};
        size_t bytes = 0;
        if (!make_entry(m->self, i, m->o->size, &t, &e, &bytes)) {
            atomic_fetch_add(&m->unread, 1);
            continue;
        }
        e.offset = atomic_fetch_add(&m->end, (long long)bytes);
        m->entry[i] = e;
        if (!write_at(m->fd, t.pixels.data, bytes, e.offset))
            atomic_store(&m->failed, errno);
    }
    tools_free(&t);
}

/* Bytes that the cache will have, by pictures here and there: exact where they are
 * few. */
static int64_t
estimate(const struct et_dataset *self, int64_t size)
{
    const struct eti_picture_list *l = self->state;
    int64_t of = l->n < ESTIMATE_OF ? l->n : ESTIMATE_OF;
    int64_t per_pixel = self->facts.field[ET_FIELD_X].shape[0] + (l->mask != NULL);
    double sum = 0;
    struct tools t = {.decoder = {.codec = NULL}};
    for (int64_t i = 0; i < of; i++) {
        struct et_sample s;
        if (!read_header(self, i * l->n / of, &t, &s))
            continue;
        int64_t h = t.decoder.info.H, w = t.decoder.info.W;
        kept_size(size, &h, &w);
        sum += (double)(h * w * per_pixel);
    }
    tools_free(&t);
    return data_begin(l->n) + (int64_t)(sum / (double)of * (double)l->n);
}

/* The disk of FOLDER, or of the nearest one above it that is there. */
static bool
find_disk(const char *folder, struct statvfs *out)
{
    char path[ETI_PATH_MAX];
    snprintf(path, sizeof path, "%s", folder);
    while (statvfs(path, out) != 0) {
        char *slash = strrchr(path, '/');
        if (errno != ENOENT || slash == path || !strcmp(path, "."))
            return false;
        if (slash)
            *slash = '\0';
        else
            memcpy(path, ".", 2);
    }
    return true;
}

/* Says how large it gets, and refuses where there is no room for that. */
static et_status
announce(struct et_ctx *cx, const struct making *m)
{
    const struct eti_picture_list *l = m->self->state;
    const char *name = m->self->type->info.name;
    struct statvfs disk;
    char needed[32], free_text[32];
    int64_t bytes = estimate(m->self, m->o->size);
    eti_size_text(bytes, needed, sizeof needed);
    et_report(cx, ET_LOG_WARN,
              "%s: %" PRId64 " pictures %s decoded once, with short sides of at most "
              "%" PRId64 " pixels, into %s: about %s%s",
              name, l->n, m->o->only_told ? "would be" : "are", m->o->size,
              m->o->folder, needed, m->o->only_told ? "; nothing is written now" : "");
    if (!find_disk(m->o->folder, &disk))
        return ET_OK;
    int64_t room = (int64_t)disk.f_bavail * (int64_t)disk.f_frsize;
    if (bytes < room)
        return ET_OK;
    et_status status =
        ET_FAIL(cx, ET_EIO, "%s: the cache takes about %s, and %s has %s free", name,
                needed, m->o->folder, eti_size_text(room, free_text, sizeof free_text));
    et_hint(cx, "a smaller cache_size, another folder, or no cache");
    return status;
}

static et_status
make_cache(struct et_ctx *cx, int fd, void *data)
{
    struct making *m = data;
    const struct eti_picture_list *l = m->self->state;
    size_t entries = (size_t)l->n * sizeof *m->entry;
    struct header h = {.key = m->key, .n = l->n};
    memcpy(h.magic, magic, sizeof magic);
    m->fd = fd;
    ET_TRY(announce(cx, m));
    ET_TRY(et_alloc(cx, entries, (void **)&m->entry));
    atomic_init(&m->end, data_begin(l->n));
    eti_thread_split(eti_thread_count(), l->n, LOT, make_part, m);
    int failed = atomic_load(&m->failed);
    if (!failed &&
        (!write_at(fd, &h, sizeof h, 0) || !write_at(fd, m->entry, entries, sizeof h)))
        failed = errno;
    et_free(cx, m->entry);
    m->entry = NULL;
    if (failed)
        return ET_FAIL(cx, ET_EIO, "cannot write pictures into %s: %s", m->o->folder,
                       strerror(failed));
    long long unread = atomic_load(&m->unread);
    if (unread)
        et_report(cx, ET_LOG_WARN,
                  "%s: %lld of the pictures cannot be read, and are not kept",
                  m->self->type->info.name, unread);
    return ET_OK;
}

/* ---- opening ---- */

static bool
fits(int fd, void *data)
{
    const struct making *m = data;
    const struct eti_picture_list *l = m->self->state;
    struct header h;
    return pread(fd, &h, sizeof h, 0) == (ssize_t)sizeof h &&
           memcmp(h.magic, magic, sizeof magic) == 0 && h.key == m->key && h.n == l->n;
}

/* The entries, each within the file. */
static et_status
read_entries(struct et_ctx *cx, struct eti_picture_cache *c, int64_t n)
{
    struct et_error why = {0};
    int64_t per_pixel = c->C + c->masks, first = data_begin(n);
    ET_TRY(et_alloc(cx, (size_t)n * sizeof *c->entry, (void **)&c->entry));
    et_status status = eti_file_read(&c->file, c->entry, n * (int64_t)sizeof *c->entry,
                                     sizeof(struct header), &why);
    if (status != ET_OK)
        return ET_FAIL(cx, status, "%s", why.message);
    for (int64_t i = 0; i < n; i++) {
        const struct entry *e = &c->entry[i];
        bool none = e->h == 0 && e->w == 0;
        if (!none && (e->h <= 0 || e->w <= 0 || e->h > ETI_PICTURE_MAX / e->w ||
                      e->offset < first ||
                      e->offset > c->file.size - e->h * (int64_t)e->w * per_pixel))
            return ET_FAIL(cx, ET_EFORMAT,
                           "%s: damaged at entry %" PRId64
                           ": remove it, and it is made "
                           "again",
                           c->file.path, i);
    }
    return ET_OK;
}

et_status
eti_picture_cache_open(struct et_ctx *cx, struct et_dataset *self,
                       const struct eti_cache_options *o,
                       struct eti_picture_cache **out)
{
    const struct eti_picture_list *l = self->state;
    struct making m = {.self = self, .o = o};
    struct eti_picture_cache *c;
    struct stat st;
    uint64_t list;
    char name[64];
    *out = NULL; /* samples are read from their files until the cache is there */
    ET_TRY(key_of(cx, self, o->size, false, &list));
    ET_TRY(key_of(cx, self, o->size, true, &m.key));
    snprintf(name, sizeof name, "pictures-%016" PRIx64, list);
    if (o->only_told && !eti_cache_has(o->folder, name, fits, &m))
        return announce(cx, &m);
    ET_TRY(et_alloc(cx, sizeof *c, (void **)&c));
    c->file.fd = -1;
    c->C = (int)self->facts.field[ET_FIELD_X].shape[0];
    c->masks = l->mask != NULL;
    et_status status = eti_file_path(cx, c->file.path, o->folder, name);
    if (status == ET_OK)
        status =
            eti_cache_open_in(cx, o->folder, name, fits, make_cache, &m, &c->file.fd);
    *out = c;
    ET_TRY(status);
    if (fstat(c->file.fd, &st) != 0)
        return ET_FAIL(cx, ET_EIO, "cannot read %s: %s", c->file.path, strerror(errno));
    c->file.size = st.st_size;
    return read_entries(cx, c, l->n);
}

/* ---- samples ---- */

et_status
eti_picture_cache_sample(const struct eti_picture_list *l, int64_t at,
                         struct et_sample *out, bool *found, struct et_error *why)
{
    const struct eti_picture_cache *c = l->cache;
    const struct entry *e = &c->entry[at];
    int64_t area = e->h * (int64_t)e->w, bytes = area * (c->C + c->masks);
    *found = e->h > 0;
    if (!*found)
        return ET_OK;
    uint8_t *room = et_sample_room(out, ET_FIELD_X, (size_t)bytes);
    if (!room)
        return eti_why(why, ET_ENOMEM, "no memory for a picture of %" PRId64 " bytes",
                       bytes);
    ET_TRY(eti_file_read(&c->file, room, bytes, e->offset, why));
    out->v[ET_FIELD_X].pixels = et_pixels_hwc(room, c->C, e->h, e->w);
    if (c->masks)
        out->v[ET_FIELD_TARGET].pixels =
            et_pixels_hwc(room + area * c->C, 1, e->h, e->w);
    else
        eti_picture_list_target(l, at, out);
    return ET_OK;
}

void
eti_picture_cache_close(struct et_ctx *cx, struct eti_picture_cache **cache)
{
    struct eti_picture_cache *c = *cache;
    if (!c)
        return;
    if (c->file.fd >= 0)
        close(c->file.fd);
    et_free(cx, c->entry);
    et_free(cx, c);
    *cache = NULL;
}
