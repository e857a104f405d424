/* SPDX-License-Identifier: Apache-2.0 */
/* members.c: see members.h. The index is text: a line for what it is of, then one for
 * each sample, the places of its picture and mask (file, offset, bytes; -1 0 0: none),
 * its name, a tab, and its label. */
#include "core/data/members.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>
#include <xxhash.h>

#include "core/base/memory.h"
#include "core/base/seams.h"
#include "core/data/cache.h"
#include "core/data/file.h"

/* VERSION changes with what an index has. */
enum { VERSION = 1, PATTERN_MOST = 1000000, BRACES_MOST = 8, HEAD_N = 31 };

/* ---- which shards ---- */

struct pattern {
    struct et_ctx *cx;
    const char *whole;
    struct eti_strings *out;
};

static et_status expand(const struct pattern *p, const char *done, const char *rest);

/* Goes on with DONE, N bytes of TEXT and REST. */
static et_status
expand_with(const struct pattern *p, const char *done, const char *text, size_t n,
            const char *rest)
{
    char path[ETI_PATH_MAX];
    int length = snprintf(path, sizeof path, "%s%.*s", done, (int)n, text);
    if (length >= (int)sizeof path)
        return ET_FAIL(p->cx, ET_EINVAL, "path of more than %d bytes: %.64s...",
                       ETI_PATH_MAX - 1, p->whole);
    return expand(p, path, rest);
}

/* "FIRST..LAST" of N bytes. */
static bool
is_range(const char *text, size_t n, long *first, long *last, int *width)
{
    char *end, *stop;
    *first = strtol(text, &end, 10);
    if (end == text || strncmp(end, "..", 2) != 0)
        return false;
    const char *second = end + 2;
    *last = strtol(second, &stop, 10);
    if (stop == second || stop != text + n || *first < 0 || *last < 0)
        return false;
    int widths[] = {(int)(end - text), (int)(stop - second)};
    *width = widths[0] > widths[1] ? widths[0] : widths[1];
    if (text[0] != '0' && second[0] != '0')
        *width = 0;
    return *first - *last < PATTERN_MOST && *last - *first < PATTERN_MOST;
}

static et_status
expand_range(const struct pattern *p, const char *done, long first, long last,
             int width, const char *rest)
{
    for (long v = first; first <= last ? v <= last : v >= last;
         v += first <= last ? 1 : -1) {
        char number[32];
        int n = snprintf(number, sizeof number, "%0*ld", width > 20 ? 20 : width, v);
        ET_TRY(expand_with(p, done, number, (size_t)n, rest));
    }
    return ET_OK;
}

static et_status
expand(const struct pattern *p, const char *done, const char *rest)
{
    size_t before = strcspn(rest, "{");
    long first, last;
    int width;
    if (!rest[before]) {
        char path[2 * ETI_PATH_MAX];
        if (p->out->n == PATTERN_MOST)
            return ET_FAIL(p->cx, ET_EINVAL, "%s: more than %d files", p->whole,
                           PATTERN_MOST);
        snprintf(path, sizeof path, "%s%s", done, rest);
        return eti_strings_add(p->cx, p->out, path);
    }
    const char *open = rest + before + 1;
    size_t n = strcspn(open, "}");
    char head[ETI_PATH_MAX];
    snprintf(head, sizeof head, "%s%.*s", done, (int)before, rest);
    if (!open[n])
        return ET_FAIL(p->cx, ET_EINVAL, "%s: a brace that is not closed", p->whole);
    if (is_range(open, n, &first, &last, &width))
        return expand_range(p, head, first, last, width, open + n + 1);
    for (const char *at = open, *end = open + n; at <= end;) {
        size_t part = strcspn(at, ",}");
        ET_TRY(expand_with(p, head, at, part, end + 1));
        at += part + 1;
    }
    return ET_OK;
}

et_status
eti_strings_of_pattern(struct et_ctx *cx, const char *pattern, struct eti_strings *out)
{
    const struct pattern p = {cx, pattern, out};
    int braces = 0;
    for (const char *at = pattern; *at; at++)
        braces += *at == '{';
    if (braces > BRACES_MOST)
        return ET_FAIL(cx, ET_EINVAL, "%.200s: %d braces, more than %d", pattern,
                       braces, BRACES_MOST);
    return expand(&p, "", pattern);
}

/* ---- making an index ---- */

static et_status
append(struct eti_member_scan *s, const char *text, int64_t n)
{
    ET_TRY(eti_grow(s->cx, &s->text, &s->room, s->n + n, 1));
    memcpy(s->text + s->n, text, (size_t)n);
    s->n += n;
    return ET_OK;
}

et_status
eti_member_add(struct eti_member_scan *s, const struct eti_picture_at *picture,
               const struct eti_picture_at *mask, const char *name, const char *label)
{
    static const struct eti_picture_at none = {.file = -1};
    const char *of = eti_string(&s->l->files, s->shard);
    char places[160];
    if (strpbrk(name, "\n\t") || (label && strchr(label, '\n')))
        return ET_FAIL(s->cx, ET_EFORMAT, "%s: %.200s: its label has more than a line",
                       of, name);
    mask = mask ? mask : &none;
    int n = snprintf(places, sizeof places, "%d %" PRId64 " %d %d %" PRId64 " %d ",
                     picture->file, picture->offset, picture->bytes, mask->file,
                     mask->offset, mask->bytes);
    ET_TRY(append(s, places, n));
    ET_TRY(append(s, name, (int64_t)strlen(name)));
    ET_TRY(append(s, "\t", 1));
    if (label)
        ET_TRY(append(s, label, (int64_t)strlen(label)));
    return append(s, "\n", 1);
}

struct index {
    struct et_dataset *self;
    const struct eti_members_config *c;
    char head[HEAD_N + 1]; /* the first line */
    char path[ETI_PATH_MAX];
};

static et_status
make_index(struct et_ctx *cx, int fd, void *data)
{
    const struct index *x = data;
    struct eti_member_scan s = {
        .cx = cx, .options = x->self->options, .l = x->self->state};
    et_status status = append(&s, x->head, HEAD_N);
    if (s.l->files.n > 1)
        et_report(cx, ET_LOG_INFO, "%s: reads what %lld shards have, once",
                  x->self->type->info.name, (long long)s.l->files.n);
    for (int64_t i = 0; status == ET_OK && i < s.l->files.n; i++) {
        s.shard = (int32_t)i;
        status = x->c->scan(&s);
    }
    if (status == ET_OK)
        status = eti_write_all(cx, fd, "an index of shards", s.text, (size_t)s.n);
    et_free(cx, s.text);
    return status;
}

/* Two numbers: of where the shards lie and what is looked for, and of that and their
 * sizes and times. */
static et_status
hash_shards(struct et_ctx *cx, const struct eti_picture_list *l, const char *key,
            uint64_t *name, uint64_t *contents)
{
    XXH3_state_t *hash = XXH3_createState();
    if (!hash)
        return ET_FAIL(cx, ET_ENOMEM, "out of memory: a key of shards");
    XXH3_64bits_reset_withSeed(hash, VERSION);
    XXH3_64bits_update(hash, key, strlen(key) + 1);
    XXH3_64bits_update(hash, l->files.text, (size_t)l->files.text_n);
    *name = XXH3_64bits_digest(hash);
    et_status status = ET_OK;
    for (int64_t i = 0; status == ET_OK && i < l->files.n; i++) {
        struct stat st;
        const char *path = eti_string(&l->files, i);
        if (stat(path, &st) != 0)
            status = ET_FAIL(cx, ET_ENOENT, "%s: there is no such file", path);
        else {
            const int64_t is[] = {st.st_size, st.st_mtim.tv_sec, st.st_mtim.tv_nsec};
            XXH3_64bits_update(hash, is, sizeof is);
        }
    }
    *contents = XXH3_64bits_digest(hash);
    XXH3_freeState(hash);
    return status;
}

static bool
fits(int fd, void *data)
{
    const struct index *x = data;
    char head[HEAD_N];
    return pread(fd, head, HEAD_N, 0) == HEAD_N && memcmp(head, x->head, HEAD_N) == 0;
}

/* ---- reading an index ---- */

/* A place from AT on; the text behind it, or NULL. */
static char *
take_place(char *at, const struct eti_picture_list *l, struct eti_picture_at *out)
{
    char *end;
    long long v[3];
    for (int i = 0; i < 3; i++, at = end + 1) {
        v[i] = strtoll(at, &end, 10);
        if (end == at || *end != ' ')
            return NULL;
    }
    if (v[0] < -1 || v[0] >= l->files.n || v[1] < 0 || v[2] < 0 || v[2] > INT32_MAX)
        return NULL;
    *out = (struct eti_picture_at){v[1], (int32_t)v[0], (int32_t)v[2]};
    return at;
}

/* Labels of this split's samples, and of the other's, with what these are called. */
struct found {
    struct eti_strings own, other, name;
};

static et_status
add_other(struct et_ctx *cx, const struct eti_picture_list *l, int32_t file,
          const char *name, const char *label, struct found *found)
{
    char text[1024];
    snprintf(text, sizeof text, "%.700s: %.200s", eti_string(&l->files, file), name);
    ET_TRY(eti_strings_add(cx, &found->name, text));
    return eti_strings_add(cx, &found->other, label);
}

/* A line of the index, which is changed. */
static et_status
take_line(struct et_ctx *cx, const struct index *x, char *line, struct found *found)
{
    struct eti_picture_list *l = x->self->state;
    struct eti_picture_at picture, mask;
    char *name = take_place(line, l, &picture);
    name = name ? take_place(name, l, &mask) : NULL;
    char *label = name ? strchr(name, '\t') : NULL;
    if (!label || picture.file < 0)
        return ET_FAIL(cx, ET_EFORMAT, "%s: damaged: remove it, and it is made again",
                       x->path);
    *label++ = 0;
    if (x->c->test_fraction > 0 &&
        !eti_is_of_split(name, x->c->test_fraction, x->self->common->split))
        return mask.file < 0 ? add_other(cx, l, picture.file, name, label, found)
                             : ET_OK;
    if (l->n > 0 && (l->mask != NULL) != (mask.file >= 0))
        return ET_FAIL(cx, ET_EFORMAT,
                       "%s: %.200s: some samples have masks, and others "
                       "labels",
                       eti_string(&l->files, picture.file), name);
    ET_TRY(eti_strings_add(cx, &l->names, name));
    if (mask.file < 0)
        ET_TRY(eti_strings_add(cx, &found->own, label));
    return eti_picture_list_add_at(cx, l, &picture, mask.file < 0 ? NULL : &mask);
}

static et_status
take_labels(struct et_ctx *cx, const struct index *x, struct found *found)
{
    struct eti_picture_list *l = x->self->state;
    struct et_error why = {0};
    int64_t bad = -1;
    for (int64_t i = 0; i < found->other.n; i++)
        ET_TRY(eti_strings_add(cx, &found->own, eti_string(&found->other, i)));
    et_status status = eti_labels_end(cx, l, &found->own, 1, x->c->labels, &bad, &why);
    if (bad >= l->n)
        return ET_FAIL(cx, status, "%s: %s", eti_string(&found->name, bad - l->n),
                       why.message);
    return bad < 0 ? status
                   : ET_FAIL(cx, status, "%s: %.200s: %s",
                             eti_string(&l->files, l->picture[bad].file),
                             eti_string(&l->names, bad), why.message);
}

static et_status
take_lines(struct et_ctx *cx, const struct index *x, char *text, int64_t n)
{
    struct eti_picture_list *l = x->self->state;
    struct found found = {.own = {0}};
    et_status status = ET_OK;
    for (char *at = text + HEAD_N, *end; status == ET_OK && at < text + n;
         at = end + 1) {
        end = memchr(at, '\n', (size_t)(text + n - at));
        if (!end)
            status = ET_FAIL(cx, ET_EFORMAT,
                             "%s: cut off: remove it, and it is made again", x->path);
        else {
            *end = 0;
            status = take_line(cx, x, at, &found);
        }
        end = end ? end : text + n;
    }
    if (status == ET_OK && !l->mask)
        status = take_labels(cx, x, &found);
    eti_strings_free(cx, &found.own);
    eti_strings_free(cx, &found.other);
    eti_strings_free(cx, &found.name);
    return status;
}

static et_status
read_index(struct et_ctx *cx, const struct index *x, int fd)
{
    struct eti_file f = {.fd = fd};
    struct et_error why = {0};
    struct stat st;
    void *text;
    if (fstat(fd, &st) != 0 || st.st_size < HEAD_N)
        return ET_FAIL(cx, ET_EIO, "%s: cannot be read", x->path);
    f.size = st.st_size;
    snprintf(f.path, sizeof f.path, "%s", x->path);
    ET_TRY(eti_alloc_dirty(cx, (size_t)f.size + 1, &text));
    et_status status = eti_file_read(&f, text, f.size, 0, &why);
    if (status != ET_OK)
        status = ET_FAIL(cx, status, "%s", why.message);
    else
        status = take_lines(cx, x, text, f.size);
    et_free(cx, text);
    return status;
}

et_status
eti_members_open(struct et_ctx *cx, struct et_dataset *self,
                 const struct eti_members_config *c)
{
    struct index x = {.self = self, .c = c};
    uint64_t of_name = 0, contents = 0;
    char name[64], folder[ETI_PATH_MAX];
    int fd;
    ET_TRY(hash_shards(cx, self->state, c->key, &of_name, &contents));
    snprintf(x.head, sizeof x.head, "etude-shards 1%016" PRIx64 "\n", contents);
    snprintf(name, sizeof name, "shards-%016" PRIx64, of_name);
    if (eti_cache_folder(folder)) {
        ET_TRY(eti_file_path(cx, x.path, folder, name));
        ET_TRY(eti_cache_open_in(cx, folder, name, fits, make_index, &x, &fd));
    } else {
        snprintf(x.path, sizeof x.path, "an index of shards");
        ET_TRY(eti_temporary_open(cx, make_index, &x, &fd));
    }
    et_status status = read_index(cx, &x, fd);
    close(fd);
    return status;
}
