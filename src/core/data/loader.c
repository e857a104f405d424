/* SPDX-License-Identifier: Apache-2.0 */
/* loader.c: batches in an order that depends on nothing but seed, epoch and place.
 *
 * Batches are numbered through all epochs: number = epoch * batches per epoch + batch.
 * A ring of slots holds their memory. A slot is free, being filled, ready, or held by
 * the caller; workers claim numbers in order, each with a free slot, and the caller
 * waits for the one that comes next. Without workers the caller fills it itself: the
 * same code, so the number of workers cannot show in a batch.
 *
 * The context belongs to the caller's thread: workers leave errors in their slot. */
#include <inttypes.h>
#include <pthread.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "core/base/need.h"
#include "core/base/sized.h"
#include "core/base/assert.h"
#include "core/base/thread.h"
#include "core/data/loader_impl.h"
#include "core/graph/upload.h"
#include "etude/diagnostic.h"
#include "etude/span.h"

enum {
    MAX_HELD = 2, /* one to compute on, one being copied to a device */
    /* A sample of more bytes than this takes longer to write (measured: 1 to 2 ns a
     * byte) than an idle thread takes to wake (9 to 265 us). */
    INLINE_SAMPLE_BYTES = 1 << 16,
    MAX_AUTO_WORKERS = 4,
};

/* ---- the ring; all with the lock held ---- */

/* NUMBER < 0: any. */
static struct eti_slot *
find_slot(struct et_loader *l, enum eti_slot_state state, int64_t number)
{
    for (int i = 0; i < l->n_slots; i++) {
        struct eti_slot *s = &l->slots[i];
        if (s->state == state && (number < 0 || s->number == number))
            return s;
    }
    return NULL;
}

/* Takes the next number and a free slot for it, if there are both. */
static struct eti_slot *
claim_slot(struct et_loader *l)
{
    struct eti_slot *s = l->claim < l->limit ? find_slot(l, ETI_SLOT_FREE, -1) : NULL;
    if (s) {
        s->state = ETI_SLOT_FILLING;
        s->number = l->claim++;
        s->generation = l->generation;
    }
    return s;
}

/* Fills a claimed slot, without the lock meanwhile. */
static void
fill_claimed(struct et_loader *l, struct eti_slot *s)
{
    pthread_mutex_unlock(&l->lock);
    s->status = s->lane ? eti_lane_wait(s->lane) : ET_OK;
    if (s->status == ET_OK)
        s->status = eti_loader_fill(l, s);
    else
        snprintf(s->why.message, sizeof s->why.message,
                 "the copy of a batch to the device failed: %s",
                 et_status_name(s->status));
    pthread_mutex_lock(&l->lock);
    s->state = s->generation == l->generation ? ETI_SLOT_READY : ETI_SLOT_FREE;
}

static void *
worker(void *argument)
{
    struct et_loader *l = argument;
    pthread_mutex_lock(&l->lock);
    while (!l->stop) {
        struct eti_slot *s = claim_slot(l);
        if (!s) {
            pthread_cond_wait(&l->work, &l->lock);
            continue;
        }
        fill_claimed(l, s);
        pthread_cond_broadcast(s->state == ETI_SLOT_READY ? &l->ready : &l->work);
    }
    pthread_mutex_unlock(&l->lock);
    return NULL;
}

/* Sets the number to hand out next and forgets what was prepared. */
static void
restart(struct et_loader *l, int64_t number)
{
    l->generation++;
    l->next = l->claim = number;
    l->at_end = false;
    for (int i = 0; i < l->n_slots; i++)
        if (l->slots[i].state == ETI_SLOT_READY)
            l->slots[i].state = ETI_SLOT_FREE;
    pthread_cond_broadcast(&l->work);
}

static struct eti_slot *
wait_for_next(struct et_loader *l)
{
    /* To evaluate, nobody reads past the end of the epoch: the next evaluation may be
     * far off, or begin elsewhere. */
    int64_t limit =
        l->config.train ? INT64_MAX : (l->next / l->batches + 1) * l->batches;
    if (limit != l->limit) {
        l->limit = limit;
        pthread_cond_broadcast(&l->work);
    }
    struct eti_slot *s;
    while (!(s = find_slot(l, ETI_SLOT_READY, l->next))) {
        if (l->n_threads)
            pthread_cond_wait(&l->ready, &l->lock);
        else
            fill_claimed(l, claim_slot(l));
    }
    s->state = ETI_SLOT_HELD;
    l->next++;
    l->at_end = l->next % l->batches == 0;
    return s;
}

/* ---- the interface ---- */

/* Gives back a slot whose filling failed; its batch comes next again. */
static et_status
give_up(struct et_ctx *cx, struct et_loader *l, struct eti_slot *s)
{
    et_status status = ET_FAIL(cx, s->status, "%s", s->why.message);
    pthread_mutex_lock(&l->lock);
    s->state = ETI_SLOT_FREE;
    restart(l, s->number);
    pthread_mutex_unlock(&l->lock);
    return status;
}

/* The tensors of the batch that is in the slot. */
static et_status
show_tensors(struct et_ctx *cx, const struct et_loader *l, struct eti_slot *s)
{
    struct et_batch *b = &s->batch;
    for (int i = 0; i < l->n_columns; i++) {
        if (!l->resident || i != ET_FIELD_X) {
            ET_TRY(eti_slot_view(cx, s, i, &b->field[i].desc, &b->field[i].tensor));
            continue;
        }
        struct et_desc d = s->of[i].v[0]->desc;
        d.shape[0] = b->n_samples;
        ET_TRY(eti_slot_view(cx, s, i, &d, &b->frames));
    }
    return ET_OK;
}

/* To the device, while it is at the batches before. */
static et_status
send_batch(const struct et_loader *l, struct eti_slot *s)
{
    const struct et_batch *b = &s->batch;
    struct et_tensor *to[ET_MAX_FIELDS];
    const void *from[ET_MAX_FIELDS];
    for (int i = 0; i < l->n_columns; i++) {
        bool framed = s->frames && i == ET_FIELD_X;
        to[i] = framed ? b->frames : b->field[i].tensor;
        from[i] = framed ? s->frames : s->of[i].memory;
    }
    return eti_lane_send(s->lane, to, from, l->n_columns);
}

/* Which samples of the batch were found unreadable. */
static void
tell_skipped(struct et_ctx *cx, const struct et_loader *l, const struct eti_slot *s)
{
    char rank[32] = "";
    if (l->config.world_size > 1)
        snprintf(rank, sizeof rank, "rank %d: ", l->config.rank);
    for (int64_t i = 0; i < s->n_skipped && i < ETI_SKIPPED_NAMED; i++)
        et_report(cx, ET_LOG_WARN, "%s%s", rank, s->skipped[i].message);
    if (s->n_skipped > ETI_SKIPPED_NAMED)
        et_report(cx, ET_LOG_WARN,
                  "%sand %" PRId64 " other samples of the batch were skipped", rank,
                  s->n_skipped - ETI_SKIPPED_NAMED);
}

static et_status
next(struct et_ctx *cx, struct et_loader *l, const struct et_batch **out)
{
    *out = NULL;
    struct eti_slot *s = NULL;
    pthread_mutex_lock(&l->lock);
    bool at_end = l->at_end;
    int held = 0;
    for (int i = 0; i < l->n_slots; i++)
        held += l->slots[i].state == ETI_SLOT_HELD;
    if (l->n_slots == 0) /* a change of transforms has failed */
        held = MAX_HELD;
    if (at_end)
        l->at_end = false;
    else if (held < MAX_HELD)
        s = wait_for_next(l);
    pthread_mutex_unlock(&l->lock);
    if (at_end)
        return ET_OK;
    if (!s)
        return ET_FAIL(cx, ET_EINVAL, "%d batches are held: release one first", held);
    tell_skipped(cx, l, s);
    if (s->status != ET_OK)
        return give_up(cx, l, s);
    if (l->config.dev)
        ET_TRY(show_tensors(cx, l, s));
    if (s->lane)
        ET_TRY(send_batch(l, s));
    *out = &s->batch;
    return ET_OK;
}

et_status
et_loader_next(struct et_ctx *cx, struct et_loader *l, const struct et_batch **out)
{
    ETI_NEED(cx, l, out);
    et_span_begin(cx, "data", "wait", NULL);
    et_status status = next(cx, l, out);
    et_span_end(cx, "data", "wait");
    return status;
}

void
et_loader_release(struct et_loader *l, const struct et_batch *batch)
{
    if (!l)
        return;
    if (!batch)
        return;
    pthread_mutex_lock(&l->lock);
    for (int i = 0; i < l->n_slots; i++) {
        struct eti_slot *s = &l->slots[i];
        if (&s->batch != batch)
            continue;
        if (s->lane) /* what fails here fails again at the next send */
            (void)!eti_lane_release(s->lane);
        s->state = ETI_SLOT_FREE;
    }
    pthread_cond_signal(&l->work);
    pthread_mutex_unlock(&l->lock);
}

et_status
et_loader_seek(struct et_ctx *cx, struct et_loader *l, int64_t epoch, int64_t batch)
{
    ETI_NEED(cx, l);
    if (epoch < 0 || batch < 0 || batch > l->batches ||
        epoch > INT64_MAX / 2 / l->batches)
        return ET_FAIL(cx, ET_EINVAL,
                       "epoch %" PRId64 ", batch %" PRId64
                       " does not exist: an epoch has %" PRId64 " batches",
                       epoch, batch, l->batches);
    pthread_mutex_lock(&l->lock);
    restart(l, epoch * l->batches + batch);
    l->at_end = batch == l->batches;
    pthread_mutex_unlock(&l->lock);
    return ET_OK;
}

void
et_loader_get_info(const struct et_loader *l, struct et_loader_info *out)
{
    if (!l || !out)
        return;
    struct et_loader *locked = (struct et_loader *)l;
    pthread_mutex_lock(&locked->lock);
    *out = (struct et_loader_info){
        .batches_per_epoch = l->batches,
        .samples_per_epoch = l->samples,
        .batch_size = l->batch_size,
        .workers = l->n_threads,
        .corrupt = l->n_corrupt,
        .n_fields = l->n_columns,
    };
    memcpy(out->field, l->field, sizeof out->field);
    for (int i = 0; i < l->n_columns; i++)
        out->desc[i] = l->column[i].desc;
    pthread_mutex_unlock(&locked->lock);
}

/* ---- beginning and end ---- */

static et_status
check_config(struct et_ctx *cx, struct et_loader *l)
{
    const struct et_data_options *o = l->data->common;
    const char *name = l->data->type->info.name;
    if (l->config.world_size < 1)
        l->config.world_size = 1;
    ET_ASSERT(l->config.rank >= 0 && l->config.rank < l->config.world_size);
    if (o->batch_size < 1)
        return ET_FAIL(cx, ET_EINVAL, "%s: batch_size is not set", name);
    if (o->batch_size % l->config.world_size)
        return ET_FAIL(cx, ET_EINVAL, "batch %" PRId64 " is not divisible by %d ranks",
                       o->batch_size, l->config.world_size);
    if (o->bucket && !l->data->type->length)
        return ET_FAIL(cx, ET_EINVAL,
                       "%s does not say how long its samples are, and bucket asks for "
                       "it",
                       name);
    return ET_OK;
}

/* How long an epoch is. */
static et_status
count_batches(struct et_ctx *cx, struct et_loader *l)
{
    const struct et_data_options *o = l->data->common;
    const struct et_data_facts *f = &l->data->facts;
    l->n = l->data->type->tokens ? eti_loader_windows(f, o->seq_len, l->config.train)
                                 : f->n_samples;
    l->batch_size = o->batch_size;
    l->batches = (l->n + (o->drop_last ? 0 : o->batch_size - 1)) / o->batch_size;
    if (o->subset_num_batches == 0 || l->batches == 0)
        return ET_FAIL(cx, ET_EINVAL,
                       "%s: an epoch has no batch: %" PRId64 " samples, "
                       "batch_size %" PRId64 ", subset_num_batches %" PRId64,
                       l->data->type->info.name, l->n, o->batch_size,
                       o->subset_num_batches);
    if (o->subset_num_batches > 0 && o->subset_num_batches < l->batches)
        l->batches = o->subset_num_batches;
    l->samples = l->batches * o->batch_size < l->n ? l->batches * o->batch_size : l->n;
    l->max_corrupt = (int64_t)(o->max_corrupt * (double)l->n);
    return ET_OK;
}

static et_status
describe(struct et_ctx *cx, struct et_loader *l)
{
    const struct et_data_options *o = l->data->common;
    const struct et_data_facts *f = &l->data->facts;
    l->image = eti_facts_image(f);
    l->n_columns = 0;
    if (l->image >= 0)
        ET_TRY(eti_pipeline_init(cx, &l->pipeline, &f->field[l->image], o->resolution,
                                 &o->transforms, &l->added));
    return eti_collate_init(cx, l);
}

static int
choose_workers(const struct et_loader *l)
{
    if (l->data->common->workers != ET_INT_UNSET)
        return (int)l->data->common->workers;
    long cores = sysconf(_SC_NPROCESSORS_ONLN);
    bool is_quick = l->raw_bytes <= INLINE_SAMPLE_BYTES && l->added.n == 0;
    if (l->resident || is_quick || cores <= 2)
        return 0; /* a busy neighbour costs the compute threads more than it saves */
    return cores / 4 < MAX_AUTO_WORKERS ? (int)(cores / 4) + 1 : MAX_AUTO_WORKERS;
}

static et_status
start_workers(struct et_ctx *cx, struct et_loader *l, int n)
{
    int error = 0;
    while (l->n_threads < n && !error) {
        error = eti_thread_begin(&l->threads[l->n_threads], worker, l);
        if (!error)
            l->n_threads++;
    }
    if (!error)
        return ET_OK;
    et_status status = ET_FAIL(cx, ET_EIO, "cannot start loader thread %d of %d: %s",
                               l->n_threads + 1, n, strerror(error));
    et_error_set_code(cx, ET_E_SYSTEM_LIMIT);
    et_hint(cx, "train_data.workers=0, or a higher limit (ulimit -u, ulimit -v)");
    return status;
}

/* The recipe says that the device does the transforms, and it cannot. */
static et_status
refuse_device(struct et_ctx *cx, const struct et_loader *l, const char *why)
{
    et_status status = ET_FAIL(cx, ET_EINVAL, "%s: transforms_on is device, and %s",
                               l->data->type->info.name, why);
    et_hint(cx, "transforms_on: auto leaves to the host what the device cannot do");
    return status;
}

/* Leaves the images on the device, where that pays or is asked for; see resident.h. */
static et_status
settle(struct et_ctx *cx, struct et_loader *l)
{
    struct et_dataset *data = l->data;
    const struct eti_pipeline *p = &l->pipeline;
    const int on = data->common->transforms_on;
    const char *why = NULL;
    if (l->image < 0 || !l->config.dev || on == ET_TRANSFORMS_ON_HOST)
        return ET_OK;
    if (l->image != ET_FIELD_X)
        why = "the image is not the first field";
    else if (p->host_only[0])
        why = p->host_only;
    else
        ET_TRY(eti_resident_open(cx, data, l->config.dev, on == ET_TRANSFORMS_ON_DEVICE,
                                 &l->resident, &why));
    if (!l->resident)
        return on == ET_TRANSFORMS_ON_DEVICE ? refuse_device(cx, l, why) : ET_OK;
    l->row_numbers = p->cuts ? ET_FRAME_NUMBERS : eti_pipeline_numbers(p);
    const int64_t shape[] = {p->C, 256};
    ET_TRY(et_tensor_new(cx, l->config.dev, ET_F32, 2, shape, ET_ROW_MAJOR, "table",
                         &l->table));
    return et_tensor_write(cx, l->table, p->table, et_desc_bytes(&l->table->desc));
}

et_status
eti_loader_begin(struct et_ctx *cx, struct et_loader *l)
{
    ET_TRY(describe(cx, l));
    ET_TRY(settle(cx, l));
    int workers = choose_workers(l);
    int n_slots = MAX_HELD + workers;
    ET_TRY(et_alloc(cx, (size_t)n_slots * sizeof *l->slots, (void **)&l->slots));
    l->n_slots = n_slots;
    for (int i = 0; i < n_slots; i++)
        ET_TRY(eti_slot_make(cx, l, &l->slots[i]));
    ET_TRY(et_alloc(cx, (size_t)workers * sizeof *l->threads, (void **)&l->threads));
    return start_workers(cx, l, workers);
}

void
eti_loader_end(struct et_loader *l)
{
    pthread_mutex_lock(&l->lock);
    l->stop = true;
    pthread_cond_broadcast(&l->work);
    pthread_mutex_unlock(&l->lock);
    for (int i = 0; i < l->n_threads; i++)
        pthread_join(l->threads[i], NULL);
    for (int i = 0; i < l->n_slots; i++)
        eti_slot_free(l, &l->slots[i]);
    et_tensor_free(&l->table);
    eti_resident_close(&l->resident);
    et_free(l->cx, l->slots);
    et_free(l->cx, l->threads);
    l->slots = NULL;
    l->threads = NULL;
    l->n_slots = l->n_threads = 0;
    l->claim = l->next;
    l->stop = false;
}

static et_status
build(struct et_ctx *cx, struct et_loader *l)
{
    ET_TRY(check_config(cx, l));
    ET_TRY(count_batches(cx, l));
    ET_TRY(et_alloc(cx, (size_t)l->max_corrupt * sizeof *l->corrupt,
                    (void **)&l->corrupt));
    return eti_loader_begin(cx, l);
}

et_status
et_loader_new_sized(struct et_ctx *cx, size_t size, struct et_dataset *data,
                    const struct et_loader_config *config, struct et_loader **out)
{
    ETI_NEED(cx, cx, data, out);
    struct et_loader *l;
    struct et_loader_config own;
    *out = NULL;
    ET_TRY(eti_sized(cx, "struct et_loader_config", config, size, &own, sizeof own));
    ET_TRY(et_alloc(cx, sizeof *l, (void **)&l));
    l->cx = cx;
    l->data = data;
    l->config = own;
    pthread_mutex_init(&l->lock, NULL);
    pthread_cond_init(&l->work, NULL);
    pthread_cond_init(&l->ready, NULL);
    et_status s = build(cx, l);
    if (s != ET_OK)
        et_loader_free(&l);
    *out = l;
    return s;
}

void
et_loader_free(struct et_loader **loader)
{
    if (!loader)
        return;
    struct et_loader *l = *loader;
    if (!l)
        return;
    eti_loader_end(l);
    eti_added_release(l->cx, &l->added);
    et_free(l->cx, l->corrupt);
    pthread_mutex_destroy(&l->lock);
    pthread_cond_destroy(&l->work);
    pthread_cond_destroy(&l->ready);
    et_free(l->cx, l);
    *loader = NULL;
}

et_status
eti_loader_unreadable(struct et_loader *l, int64_t **out, int64_t *n)
{
    void *block;
    ET_TRY(et_alloc(l->cx, ((size_t)l->max_corrupt + 1) * sizeof *l->corrupt, &block));
    pthread_mutex_lock(&l->lock);
    *n = l->n_corrupt;
    if (*n)
        memcpy(block, l->corrupt, (size_t)*n * sizeof *l->corrupt);
    pthread_mutex_unlock(&l->lock);
    *out = block;
    return ET_OK;
}

/* Workers read ahead and may have found some that the run has not come to: they find
 * those again. */
et_status
eti_loader_archive(struct et_loader *l, struct et_archive *a)
{
    void *block = NULL;
    int64_t n = 0, *copy = NULL;
    if (et_archive_mode(a) == ET_ARCHIVE_SAVE)
        ET_TRY(eti_loader_unreadable(l, &copy, &n));
    block = copy;
    et_status status = et_archive_list(a, "unreadable", &block, &n, sizeof *l->corrupt);
    if (status == ET_OK && et_archive_mode(a) == ET_ARCHIVE_LOAD &&
        n <= l->max_corrupt) {
        pthread_mutex_lock(&l->lock);
        l->n_corrupt = n;
        if (n)
            memcpy(l->corrupt, block, (size_t)n * sizeof *l->corrupt);
        pthread_mutex_unlock(&l->lock);
    }
    et_free(l->cx, block);
    return status;
}
