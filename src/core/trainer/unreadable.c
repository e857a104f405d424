/* SPDX-License-Identifier: Apache-2.0 */
/* unreadable.c: samples that a rank could not read, which it alone knows of: rank 0
 * saves them for all, and each loads its own. */
#include "config.h"

#include <stdio.h>
#include <string.h>

#include "core/data/loader_impl.h"
#include "core/trainer/part.h"
#include "core/trainer/ranks.h"

struct unreadable {
    int64_t *all; /* while saving: [world][most], each with its number before it */
    int64_t most;
};

static void
release(struct eti_part *p)
{
    struct unreadable *own = p->own;
    et_free(p->s->cx, own->all);
    own->all = NULL;
}

/* The N samples of OWN_LIST, in rows of MOST, from all ranks. */
static et_status
exchange(struct eti_part *p, const int64_t *list, int64_t n)
{
    struct unreadable *own = p->own;
    struct et_ctx *cx = p->s->cx;
    size_t row = (size_t)own->most * sizeof *list;
    void *block;
    ET_TRY(et_alloc(cx, row * (size_t)(p->s->world + 1), &block));
    own->all = block;
    int64_t *mine = own->all + (int64_t)p->s->world * own->most;
    mine[0] = n;
    if (n)
        memcpy(mine + 1, list, (size_t)n * sizeof *list);
    return et_comm_all_gather(cx, p->common->comm, mine, row, own->all);
}

static et_status
gather(struct eti_part *p)
{
    struct unreadable *own = p->own;
    struct et_ctx *cx = p->s->cx;
    struct et_comm *comm = p->common->comm;
    int64_t n, most, *list;
    if (!comm || !p->config->train)
        return ET_OK;
    release(p);
    ET_TRY(eti_loader_unreadable(p->config->train, &list, &n));
    most = n;
    et_comm_set_mark(comm, -1, ETI_AT_UNREADABLE, 0);
    et_status status = et_comm_all_reduce(cx, comm, &most, 1, ET_I64, ET_COMM_MAX);
    own->most = most + 1;
    if (status == ET_OK)
        status = exchange(p, list, n);
    et_free(cx, list);
    return status;
}

static et_status
archive_rank(struct eti_part *p, struct et_archive *a, int rank)
{
    const struct unreadable *own = p->own;
    char name[16];
    et_status status;
    snprintf(name, sizeof name, "%05d", rank);
    ET_TRY(et_archive_enter(a, name));
    if (et_archive_mode(a) == ET_ARCHIVE_SAVE) {
        int64_t *row = own->all + (int64_t)rank * own->most, n = row[0];
        void *list = row + 1;
        status = et_archive_list(a, "unreadable", &list, &n, sizeof *row);
    } else {
        status = eti_loader_archive(p->config->train, a);
    }
    et_archive_leave(a);
    return status;
}

static et_status
archive(struct eti_part *p, struct et_archive *a)
{
    bool saves = et_archive_mode(a) == ET_ARCHIVE_SAVE;
    int first = saves ? 1 : p->s->rank, end = saves ? p->s->world : first + 1;
    if (!p->common->comm || !p->config->train || (!saves && first == 0))
        return ET_OK;
    ET_TRY(et_archive_enter(a, "ranks"));
    et_status status = ET_OK;
    for (int i = first; i < end && status == ET_OK; i++)
        status = archive_rank(p, a, i);
    et_archive_leave(a);
    return status;
}

const struct eti_part_type eti_part_unreadable = {
    .size = sizeof(struct unreadable),
    .release = release,
    .gather = gather,
    .archive = archive,
};
