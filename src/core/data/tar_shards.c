/* SPDX-License-Identifier: Apache-2.0 */
/* tar_shards.c: pictures and what they show in tar files, in webdataset's layout.
 *
 * Members that follow each other and have the same name up to the first point of its
 * last part are one sample: KEY.jpg with KEY.cls, KEY.json, KEY.txt or a mask KEY.png.
 * What lies where is read once (members.h), and samples are then read in any order.
 *
 * Source: webdataset 1.0, tariterators.py (base_plus_ext, group_by_keys). */
#include <ctype.h>
#include <jansson.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "core/data/members.h"
#include "core/data/tar.h"

/* Of a sample: files, and bytes of a label. */
enum { MOST_PARTS = 64, LABEL_MOST = 1 << 16, ENDING_MOST = 64 };

struct options {
    struct et_data_options common;
    int color;
    char *image, *target, *json_key;
    double test_fraction;
    struct eti_label_options labels;
    struct eti_cache_options cache;
};

static const struct et_option option_table[] = {
    ET_DATA_OPTION_PATH(
        struct options, NULL, ET_OPT_REQUIRED,
        "tar files, such as \"shard-{000..019}.tar\" (in quotes), or a folder of "
        "them, or of train and val"),
    ET_DATA_OPTIONS(struct options),
    ET_DATA_IMAGE_OPTIONS(struct options),
    ETI_CHANNELS_OPTION(struct options),
    {
        .name = "image",
        .type = ET_OPT_TEXT,
        .offset = offsetof(struct options, image),
        .def = "jpg;jpeg;webp;png",
        .help = "endings of pictures: the first that a sample has",
    },
    {
        .name = "target",
        .type = ET_OPT_TEXT,
        .offset = offsetof(struct options, target),
        .def = "cls;txt;json;mask.png;seg.png;png",
        .help = "endings of labels, and of masks (png): the first that a sample has",
    },
    {
        .name = "json_key",
        .type = ET_OPT_TEXT,
        .offset = offsetof(struct options, json_key),
        .def = "label",
        .help = "what of a JSON object is the label",
    },
    ETI_TEST_FRACTION_OPTION(struct options),
    ETI_LABEL_OPTIONS(struct options),
    ETI_CACHE_OPTIONS(struct options),
    {.name = NULL},
};

/* The files of one sample. */
struct group {
    char key[ETI_PATH_MAX];
    struct part {
        char ending[ENDING_MOST];
        int64_t offset, bytes;
    } part[MOST_PARTS];
    int n;
};

struct scan {
    struct eti_member_scan *s;
    const struct options *o;
    const char *path;
    struct eti_file file;
    struct group group;
};

/* ---- one sample ---- */

/* The part of G with the first of ENDINGS, apart from NOT. */
static const struct part *
find_part(const struct group *g, const char *endings, const struct part * not )
{
    for (size_t n; *endings; endings += n + (endings[n] == ';')) {
        n = strcspn(endings, ";");
        for (int i = 0; i < g->n; i++)
            if (&g->part[i] != not &&strlen(g->part[i].ending) == n &&
                strncmp(g->part[i].ending, endings, n) == 0)
                return &g->part[i];
    }
    return NULL;
}

static bool
ends_with(const char *text, const char *ending)
{
    size_t n = strlen(text), m = strlen(ending);
    return n >= m && strcmp(text + n - m, ending) == 0;
}

/* The value of json_key in the object TEXT, as text. */
static et_status
take_json(struct scan *x, char *text, size_t n)
{
    json_t *json = json_loadb(text, n, JSON_REJECT_DUPLICATES | JSON_DECODE_ANY, NULL);
    const json_t *v = json_object_get(json, x->o->json_key);
    bool good = true;
    if (json_is_string(v) && json_string_length(v) < LABEL_MOST)
        snprintf(text, LABEL_MOST, "%s", json_string_value(v));
    else if (json_is_integer(v))
        snprintf(text, LABEL_MOST, "%" JSON_INTEGER_FORMAT, json_integer_value(v));
    else if (json_is_real(v))
        snprintf(text, LABEL_MOST, "%.17g", json_real_value(v));
    else
        good = false;
    json_decref(json);
    return good ? ET_OK
                : ET_FAIL(x->s->cx, ET_EFORMAT,
                          "%s: %.200s.json: no number or text '%s' in it", x->path,
                          x->group.key, x->o->json_key);
}

/* The label that part P has, without blanks around it. */
static et_status
read_label(struct scan *x, const struct part *p, char out[LABEL_MOST + 1])
{
    struct et_error why = {0};
    if (p->bytes > LABEL_MOST)
        return ET_FAIL(x->s->cx, ET_EFORMAT, "%s: %.200s.%s: a label of %lld bytes",
                       x->path, x->group.key, p->ending, (long long)p->bytes);
    et_status status = eti_file_read(&x->file, out, p->bytes, p->offset, &why);
    if (status != ET_OK)
        return ET_FAIL(x->s->cx, status, "%s", why.message);
    size_t n = (size_t)p->bytes;
    out[n] = 0;
    if (ends_with(p->ending, "json"))
        return take_json(x, out, n);
    while (n > 0 && isspace((unsigned char)out[n - 1]))
        out[--n] = 0;
    size_t blanks = strspn(out, " \t\r\n");
    memmove(out, out + blanks, n - blanks + 1);
    return ET_OK;
}

static struct eti_picture_at
place_of(const struct scan *x, const struct part *p)
{
    return (struct eti_picture_at){p->offset, x->s->shard, (int32_t)p->bytes};
}

/* Adds the sample that has been read, if there is one. */
static et_status
end_group(struct scan *x)
{
    const struct options *o = x->o;
    struct group *g = &x->group;
    char label[LABEL_MOST + 1], name[ETI_PATH_MAX + ENDING_MOST];
    if (g->n == 0)
        return ET_OK;
    const struct part *image = find_part(g, o->image, NULL);
    const struct part *target = find_part(g, o->target, image);
    if (!image || !target)
        return ET_FAIL(x->s->cx, ET_EFORMAT,
                       "%s: sample %.200s has no file that ends in one of %s", x->path,
                       g->key, image ? o->target : o->image);
    struct eti_picture_at picture = place_of(x, image), mask = place_of(x, target);
    bool is_mask = ends_with(target->ending, "png");
    if (image->bytes > INT32_MAX || (is_mask && target->bytes > INT32_MAX))
        return ET_FAIL(x->s->cx, ET_EFORMAT, "%s: sample %.200s has 2 GiB or more",
                       x->path, g->key);
    if (!is_mask)
        ET_TRY(read_label(x, target, label));
    snprintf(name, sizeof name, "%s.%s", g->key, image->ending);
    g->n = 0;
    return eti_member_add(x->s, &picture, is_mask ? &mask : NULL, name,
                          is_mask ? NULL : label);
}

/* ---- members ---- */

/* How long the key of NAME is: up to the first point behind the last slash; 0: there is
 * no key, or nothing behind the point. */
static size_t
key_length(const char *name)
{
    const char *slash = strrchr(name, '/');
    const char *last = slash ? slash + 1 : name;
    size_t n = strcspn(last, ".");
    return n == 0 || last[n] == 0 || last[n + 1] == 0 ? 0 : (size_t)(last - name) + n;
}

static et_status
add_member(struct scan *x, const struct eti_tar_member *m)
{
    struct group *g = &x->group;
    size_t n = key_length(m->name);
    if (!m->is_file || n == 0)
        return ET_OK;
    if (g->n == 0 || strlen(g->key) != n || strncmp(g->key, m->name, n) != 0) {
        ET_TRY(end_group(x));
        snprintf(g->key, sizeof g->key, "%.*s", (int)n, m->name);
    }
    const char *ending = m->name + n + 1;
    if (strlen(ending) >= ENDING_MOST) /* none that anybody asks for */
        return ET_OK;
    struct part *p = &g->part[g->n];
    if (g->n == MOST_PARTS)
        return ET_FAIL(x->s->cx, ET_EFORMAT, "%s: sample %.200s has more than %d files",
                       x->path, g->key, MOST_PARTS);
    *p = (struct part){.offset = m->offset, .bytes = m->bytes};
    for (size_t i = 0; ending[i]; i++)
        p->ending[i] = (char)tolower((unsigned char)ending[i]);
    for (int i = 0; i < g->n; i++)
        if (strcmp(g->part[i].ending, p->ending) == 0)
            return ET_FAIL(x->s->cx, ET_EFORMAT, "%s: %.200s comes twice in a row",
                           x->path, m->name);
    g->n++;
    return ET_OK;
}

static et_status
scan_members(struct scan *x)
{
    struct eti_tar t = {.f = &x->file};
    struct et_error why = {0};
    struct eti_tar_member m;
    for (;;) {
        bool got;
        et_status status = eti_tar_next(&t, &m, &got, &why);
        if (status != ET_OK)
            return ET_FAIL(x->s->cx, status, "%s: %s", x->path, why.message);
        if (!got)
            return end_group(x);
        ET_TRY(add_member(x, &m));
    }
}

static et_status
scan_shard(struct eti_member_scan *s)
{
    struct scan *x;
    ET_TRY(et_alloc(s->cx, sizeof *x, (void **)&x));
    x->s = s;
    x->o = s->options;
    x->path = eti_string(&s->l->files, s->shard);
    snprintf(x->file.path, sizeof x->file.path, "%s", x->path);
    et_status status = eti_file_open(s->cx, x->path, &x->file.fd, &x->file.size);
    if (status == ET_OK) {
        status = scan_members(x);
        close(x->file.fd);
    }
    et_free(s->cx, x);
    return status;
}

/* ---- the class ---- */

/* The files in FOLDER whose names end in .tar. */
static et_status
find_in_folder(struct et_ctx *cx, const char *folder, struct eti_strings *files)
{
    struct eti_strings all = {0};
    char path[ETI_PATH_MAX];
    et_status status = eti_strings_of_folder(cx, folder, &all);
    for (int64_t i = 0; status == ET_OK && i < all.n; i++) {
        if (!ends_with(eti_string(&all, i), ".tar"))
            continue;
        status = eti_file_path(cx, path, folder, eti_string(&all, i));
        if (status == ET_OK)
            status = eti_strings_add(cx, files, path);
    }
    eti_strings_free(cx, &all);
    if (status == ET_OK && files->n == 0)
        return ET_FAIL(cx, ET_EFORMAT, "tar_shards: no file in %s ends in .tar",
                       folder);
    return status;
}

/* *APART: there is a folder for each split. */
static et_status
find_shards(struct et_ctx *cx, const struct options *o, struct eti_strings *files,
            bool *apart)
{
    static const char *const parts[] = {"train", "val"};
    char folder[ETI_PATH_MAX];
    *apart = false;
    if (!eti_is_folder(cx, o->common.path))
        return eti_strings_of_pattern(cx, o->common.path, files);
    ET_TRY(eti_file_path(cx, folder, o->common.path, parts[o->common.split]));
    *apart = eti_is_folder(cx, folder);
    return find_in_folder(cx, *apart ? folder : o->common.path, files);
}

static et_status
open_shards(struct et_ctx *cx, struct et_dataset *self)
{
    const struct options *o = self->options;
    struct eti_picture_list *l = self->state;
    char key[1024];
    bool apart;
    for (int i = 0; i < 256; i++)
        l->map[i] = (uint8_t)i;
    snprintf(key, sizeof key, "tar %.300s|%.300s|%.300s", o->image, o->target,
             o->json_key);
    ET_TRY(find_shards(cx, o, &l->files, &apart));
    const struct eti_members_config c = {
        .scan = scan_shard,
        .key = key,
        .labels = &o->labels,
        .test_fraction = apart ? 0 : o->test_fraction,
    };
    ET_TRY(eti_members_open(cx, self, &c));
    if (l->mask && o->labels.num_classes == ET_INT_UNSET)
        return ET_FAIL(cx, ET_EINVAL,
                       "tar_shards: num_classes is missing, which masks do not tell");
    return eti_picture_list_end(cx, self, o->color ? 3 : 1, o->labels.num_classes,
                                &o->cache);
}

const struct et_dataset_class et_dataset_tar_shards = {
    .info =
        {
            .name = "tar_shards",
            .class_name = "TarShards",
            .summary = "pictures and labels in tar files, as webdataset writes them",
            .applies_to = "vision",
            .options = option_table,
            .options_size = sizeof(struct options),
        },
    .state_size = sizeof(struct eti_picture_list),
    .open = open_shards,
    .sample = eti_picture_list_sample,
    .close = eti_picture_list_close,
};
