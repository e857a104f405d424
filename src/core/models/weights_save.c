/* SPDX-License-Identifier: Apache-2.0 */
/* weights_save.c: a model's values to a safetensors file, under our names or a hub's.
 * See model.h, weight_maps.h.
 *
 * Saving writes beside the file and renames, so that there is always a whole one. */
#include <stdio.h>
#include <string.h>

#include "core/base/need.h"
#include "core/base/arena.h"
#include "core/base/seams.h"
#include "core/models/weight_file.h"
#include "core/models/weights_save.h"
#include "etude/model.h"

/* A tensor of the file. */
struct entry {
    const struct et_leaf *leaf; /* NULL: num_batches_tracked */
    int part, parts;
};

struct saving {
    struct et_ctx *cx;
    const struct et_model *model;
    const struct eti_weight_map *map; /* NULL: our names */
    struct et_leaves leaves;
    struct eti_arena names;
    struct entry *entry;
    struct eti_st_tensor *tensor; /* of each entry */
    int n;
};

/* ---- what is written ---- */

static et_status
add(struct saving *s, const char *name, const struct entry *e)
{
    int64_t at = s->n ? s->tensor[s->n - 1].end : 0;
    struct eti_st_tensor *t = &s->tensor[s->n];
    size_t bytes = strlen(name) + 1;
    char *copy = eti_arena_alloc(&s->names, bytes);
    if (!copy)
        return ET_ENOMEM;
    memcpy(copy, name, bytes);
    *t = (struct eti_st_tensor){
        .name = copy, .dtype = ET_I64, .begin = at, .end = at + 8};
    if (e->leaf) {
        const struct et_desc *d = &e->leaf->param->desc;
        t->dtype = ET_F32;
        t->ndim = d->ndim;
        memcpy(t->shape, d->shape, (size_t)d->ndim * sizeof *t->shape);
        if (e->parts > 1)
            t->shape[0] /= e->parts;
        t->end = at + et_desc_count(d) / e->parts * (int64_t)sizeof(float);
    }
    s->entry[s->n++] = *e;
    return ET_OK;
}

static et_status
has_no_name(const struct saving *s, const char *name)
{
    return ET_FAIL(s->cx, ET_ENOTSUP, "%s's %s has no tensor for '%s'", s->map->form,
                   s->model->type->info.name, name);
}

/* Batch norm's: PyTorch counts batches beside its running statistics. */
static et_status
add_count(struct saving *s, const char *leaf)
{
    static const char last[] = "running_var";
    const struct entry e = {.parts = 1};
    char ours[ETI_WEIGHT_NAME], name[ETI_WEIGHT_NAME];
    size_t n = strlen(leaf), k = strlen(last);
    int parts;
    if (!s->map->counts_batches || n < k || strcmp(leaf + n - k, last) != 0)
        return ET_OK;
    snprintf(ours, sizeof ours, "%.*snum_batches_tracked", (int)(n - k), leaf);
    return eti_weight_map_name(s->map, ours, 0, name, &parts) ? add(s, name, &e)
                                                              : has_no_name(s, ours);
}

static et_status
add_leaf(struct saving *s, const struct et_leaf *leaf)
{
    char name[ETI_WEIGHT_NAME];
    struct entry e = {.leaf = leaf, .parts = 1};
    if (!s->map)
        return add(s, leaf->name, &e);
    for (e.part = 0; e.part < e.parts; e.part++) {
        if (!eti_weight_map_name(s->map, leaf->name, e.part, name, &e.parts))
            return has_no_name(s, leaf->name);
        ET_TRY(add(s, name, &e));
    }
    return add_count(s, leaf->name);
}

static et_status
list_all(struct saving *s)
{
    size_t most = (size_t)s->leaves.n * ETI_WEIGHT_PARTS + 1;
    void *block;
    ET_TRY(et_alloc(s->cx, most * sizeof *s->entry, &block));
    s->entry = block;
    ET_TRY(et_alloc(s->cx, most * sizeof *s->tensor, &block));
    s->tensor = block;
    for (int i = 0; i < s->leaves.n; i++)
        ET_TRY(add_leaf(s, &s->leaves.v[i]));
    return ET_OK;
}

/* ---- writing ---- */

static et_status
write_header(const struct saving *s, const struct eti_draft *d,
             const struct eti_st_note *notes, int n_notes)
{
    uint8_t *header;
    int64_t bytes;
    ET_TRY(eti_st_print_notes(s->cx, s->tensor, s->n, notes, n_notes, &header, &bytes));
    et_status status = eti_write_all(s->cx, d->fd, d->temporary, header, (size_t)bytes);
    et_free(s->cx, header);
    return status;
}

static et_status
write_entry(const struct saving *s, const struct eti_draft *d, const struct entry *e,
            uint32_t seed)
{
    static const int64_t no_batches = 0;
    if (!e->leaf)
        return eti_write_all(s->cx, d->fd, d->temporary, &no_batches,
                             sizeof no_batches);
    int64_t count = et_desc_count(&e->leaf->param->desc), n = count / e->parts;
    void *values;
    ET_TRY(et_alloc(s->cx, ((size_t)count + 1) * sizeof(float), &values));
    et_status status =
        et_param_read(s->cx, e->leaf->param, e->leaf->name, seed, values, count);
    if (status == ET_OK)
        status = eti_write_all(s->cx, d->fd, d->temporary,
                               (const float *)values + n * e->part,
                               (size_t)n * sizeof(float));
    et_free(s->cx, values);
    return status;
}

static et_status
write_all(struct saving *s, uint32_t seed, const struct eti_st_note *notes, int n_notes,
          const char *path)
{
    struct eti_draft d;
    ET_TRY(list_all(s));
    ET_TRY(eti_draft_open(s->cx, path, &d));
    et_status status = write_header(s, &d, notes, n_notes);
    for (int i = 0; i < s->n && status == ET_OK; i++)
        status = write_entry(s, &d, &s->entry[i], seed);
    return eti_draft_close(&d, status);
}

et_status
eti_model_save_as(struct et_ctx *cx, const struct et_model *model,
                  const struct eti_weight_map *map, uint32_t seed,
                  const struct eti_st_note *notes, int n_notes, const char *path)
{
    struct saving s = {.cx = cx, .model = model, .map = map};
    ET_TRY(et_module_leaves(cx, model->root, ET_PARAM | ET_BUFFER, &s.leaves));
    eti_arena_init(&s.names, cx, 4 << 10);
    et_status status = write_all(&s, seed, notes, n_notes, path);
    eti_arena_release(&s.names);
    et_free(cx, s.entry);
    et_free(cx, s.tensor);
    et_leaves_release(&s.leaves);
    return status;
}

et_status
eti_model_save(struct et_ctx *cx, const struct et_model *model, uint32_t seed,
               const struct eti_st_note *notes, int n_notes, const char *path)
{
    return eti_model_save_as(cx, model, NULL, seed, notes, n_notes, path);
}

et_status
et_model_save_weights(struct et_ctx *cx, const struct et_model *model, uint32_t seed,
                      const char *path)
{
    ETI_NEED(cx, cx, model);
    return eti_model_save(cx, model, seed, NULL, 0, path);
}
