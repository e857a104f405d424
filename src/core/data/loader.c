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
#include <signal.h>
#include <string.h>
#include <unistd.h>

#include "core/base/assert.h"
#include "core/data/file.h"
#include "core/data/order.h"
#include "core/data/pipeline.h"

enum {
    MAX_HELD = 2, /* one to compute on, one being copied to a device */
    /* A sample of more bytes than this takes longer to write than a worker costs to
     * wake (measured: 1 ns a byte, some 50 us between threads on a busy core). */
    INLINE_SAMPLE_BYTES = 1 << 16,
    MAX_AUTO_WORKERS = 4,
};

enum slot_state { FREE, FILLING, READY, HELD };

struct slot {
    struct et_batch batch;
    enum slot_state state;
    int64_t number;      /* of the batch it is for */
    uint64_t generation; /* of the loader when claimed; a seek makes it stale */
    et_status status;    /* of filling */
    struct et_error why;
    int64_t n_skipped;       /* samples first found unreadable here */
    struct et_error skipped; /* the last of them */
    uint8_t *scratch;        /* two raw samples, then a resized one */
    struct tensors { /* the batch's memory; NULL without a device that shares it */
        struct et_tensor *x, *target;
    } full, last; /* last: of the epoch's last batch where that is smaller */
};

struct et_loader {
    struct et_ctx *cx;
    struct et_dataset *data;
    struct et_loader_config config;
    struct eti_pipeline pipeline; /* images */
    int64_t n;                    /* samples of the data set, per epoch */
    int64_t batch_size;           /* global */
    int64_t batches, samples;     /* per epoch, as consumed */
    struct et_desc x_desc, target_desc;
    int64_t x_stride;  /* elements of x per sample */
    int64_t raw_bytes; /* images: of a raw sample */

    pthread_mutex_t lock;       /* guards all below, and the slots' states */
    pthread_cond_t work, ready; /* for workers; for the caller */
    struct slot *slots;
    int n_slots;
    int64_t next;  /* number to hand out */
    int64_t claim; /* number to fill next */
    int64_t limit; /* numbers below it may be claimed */
    uint64_t generation;
    bool at_end; /* the epoch's end is to be told first */
    bool stop;
    pthread_t *threads;
    int n_threads;
    int64_t *corrupt; /* samples that could not be read, each once */
    int64_t n_corrupt, max_corrupt;
};

/* ---- which samples ---- */

/* The samples of batch BATCH that are this rank's: places [*FIRST, *FIRST + n). */
static int64_t
rank_slice(const struct et_loader *l, int64_t batch, int64_t *first)
{
    int64_t begin = batch * l->batch_size;
    int64_t size =
        l->samples - begin < l->batch_size ? l->samples - begin : l->batch_size;
    int64_t from = size * l->config.rank / l->config.world_size;
    int64_t to = size * (l->config.rank + 1) / l->config.world_size;
    *first = begin + from;
    return to - from;
}

/* Windows of T + 1 tokens that overlap by one, wherever in [0, T) they begin. */
static int64_t
count_windows(const struct et_data_facts *f, int64_t T, bool train)
{
    int64_t n = train ? (f->n_tokens - T) / T : (f->n_tokens - 1) / T;
    return n > 0 ? n : 1;
}

static int64_t
window_phase(const struct et_loader *l, int64_t epoch)
{
    if (!l->config.train)
        return 0;
    int64_t T = l->data->common->seq_len;
    int64_t spare =
        l->data->facts.n_tokens - l->n * T; /* places for the first window */
    struct et_rng r = et_rng_at(l->config.seed, ET_RNG_SHUFFLE, (uint64_t)epoch);
    r.ordinal = (uint64_t)1 << 32; /* far from the order's keys */
    return (int64_t)et_rng_below(&r, (uint64_t)(spare < T ? spare : T));
}

static int64_t
sample_at(const struct et_loader *l, const struct eti_order *order, int64_t place)
{
    return l->data->common->shuffle ? eti_order_at(order, place) : place;
}

/* ---- filling a slot ---- */

/* Counts sample AT as unreadable. EFORMAT when that is one too many. */
static et_status
note_corrupt(struct et_loader *l, struct slot *s, int64_t at,
             const struct et_error *why)
{
    et_status status = ET_OK;
    pthread_mutex_lock(&l->lock);
    int64_t i = 0;
    while (i < l->n_corrupt && l->corrupt[i] != at)
        i++;
    if (i == l->n_corrupt && i < l->max_corrupt) {
        l->corrupt[l->n_corrupt++] = at;
        s->n_skipped++;
        eti_why(&s->skipped, ET_EFORMAT,
                "%.900s (sample %" PRId64 " skipped, %" PRId64 " of %" PRId64
                " allowed)",
                why->message, at, l->n_corrupt, l->max_corrupt);
    } else if (i == l->n_corrupt) {
        status = eti_why(&s->why, ET_EFORMAT,
                         "%.900s (sample %" PRId64 ", %" PRId64
                         " already skipped of %" PRId64 " allowed)",
                         why->message, at, l->n_corrupt, l->max_corrupt);
    }
    pthread_mutex_unlock(&l->lock);
    return status;
}

/* A raw image on its way into a batch. */
struct raw {
    const uint8_t *pixels;
    int32_t label;
};

/* Has the memory fetched that will be read next: samples come in random order, and
 * waiting for them takes as long as writing them (measured at 784 bytes). */
static void
prefetch(const uint8_t *p, int64_t bytes)
{
    enum { LINE = 64, MOST = 4096 };
    for (int64_t i = 0; i < bytes && i < MOST; i += LINE)
        __builtin_prefetch(p + i);
}

/* Finds sample AT, or the next one that can be read. */
static et_status
read_image(struct et_loader *l, struct slot *s, int64_t at, uint8_t *scratch,
           struct raw *out)
{
    const struct et_dataset *data = l->data;
    for (;;) {
        struct et_error why = {0};
        et_status status =
            data->class->image(data, at, scratch, &out->pixels, &out->label, &why);
        if (status == ET_OK) {
            prefetch(out->pixels, l->raw_bytes);
            return ET_OK;
        }
        if (status != ET_EFORMAT)
            return eti_why(&s->why, status, "%.900s (sample %" PRId64 ")", why.message,
                           at);
        ET_TRY(note_corrupt(l, s, at, &why));
        at = (at + 1) % l->n;
    }
}

/* Reads one sample ahead of writing. */
static et_status
fill_images(struct et_loader *l, struct slot *s, const struct eti_order *order,
            int64_t first)
{
    struct et_batch *b = &s->batch;
    uint8_t *resized = s->scratch + 2 * l->raw_bytes;
    struct raw raw[2];
    for (int64_t i = 0; i <= b->n_samples; i++) {
        if (i < b->n_samples)
            ET_TRY(read_image(l, s, sample_at(l, order, first + i),
                              s->scratch + i % 2 * l->raw_bytes, &raw[i % 2]));
        if (i == 0)
            continue;
        const struct raw *r = &raw[(i - 1) % 2];
        b->target[i - 1] = r->label;
        eti_pipeline_run(&l->pipeline, r->pixels, resized, l->config.seed,
                         b->first + i - 1, (float *)b->x + (i - 1) * l->x_stride);
    }
    return ET_OK;
}

static et_status
fill_tokens(struct et_loader *l, struct slot *s, const struct eti_order *order,
            int64_t first)
{
    struct et_batch *b = &s->batch;
    const struct et_dataset *data = l->data;
    int64_t T = data->common->seq_len, phase = window_phase(l, b->epoch);
    int32_t *x = b->x, *target = b->target;
    for (int64_t i = 0; i < b->n_samples; i++, x += T, target += T) {
        struct et_error why = {0};
        int64_t at = sample_at(l, order, first + i), begin = phase + at * T;
        et_status status = data->class->tokens(data, begin, T, x, &why);
        if (status == ET_OK)
            status = data->class->tokens(data, begin + T, 1, &target[T - 1], &why);
        if (status != ET_OK)
            return eti_why(&s->why, status, "%.900s (sample %" PRId64 ")", why.message,
                           at);
        memcpy(target, x + 1, (size_t)(T - 1) * sizeof *target);
    }
    b->n_tokens = b->n_samples * T;
    return ET_OK;
}

static et_status
fill(struct et_loader *l, struct slot *s)
{
    struct et_batch *b = &s->batch;
    struct eti_order order;
    int64_t first;
    s->n_skipped = 0;
    b->epoch = s->number / l->batches;
    b->batch = s->number % l->batches;
    b->n_samples = rank_slice(l, b->batch, &first);
    b->first = b->epoch * l->samples + first;
    b->x_desc.shape[0] = b->target_desc.shape[0] = b->n_samples;
    const struct tensors *t = b->n_samples == l->x_desc.shape[0] ? &s->full : &s->last;
    b->x_tensor = t->x;
    b->target_tensor = t->target;
    eti_order_init(&order, l->n, l->config.seed, b->epoch);
    return l->data->facts.kind == ET_DATA_TOKENS ? fill_tokens(l, s, &order, first)
                                                 : fill_images(l, s, &order, first);
}

/* ---- the ring; all with the lock held ---- */

/* NUMBER < 0: any. */
static struct slot *
find_slot(struct et_loader *l, enum slot_state state, int64_t number)
{
    for (int i = 0; i < l->n_slots; i++) {
        struct slot *s = &l->slots[i];
        if (s->state == state && (number < 0 || s->number == number))
            return s;
    }
    return NULL;
}

/* Takes the next number and a free slot for it, if there are both. */
static struct slot *
claim_slot(struct et_loader *l)
{
    struct slot *s = l->claim < l->limit ? find_slot(l, FREE, -1) : NULL;
    if (s) {
        s->state = FILLING;
        s->number = l->claim++;
        s->generation = l->generation;
    }
    return s;
}

/* Fills a claimed slot, without the lock meanwhile. */
static void
fill_claimed(struct et_loader *l, struct slot *s)
{
    pthread_mutex_unlock(&l->lock);
    s->status = fill(l, s);
    pthread_mutex_lock(&l->lock);
    s->state = s->generation == l->generation ? READY : FREE;
}

static void *
worker(void *argument)
{
    struct et_loader *l = argument;
    pthread_mutex_lock(&l->lock);
    while (!l->stop) {
        struct slot *s = claim_slot(l);
        if (!s) {
            pthread_cond_wait(&l->work, &l->lock);
            continue;
        }
        fill_claimed(l, s);
        pthread_cond_broadcast(s->state == READY ? &l->ready : &l->work);
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
        if (l->slots[i].state == READY)
            l->slots[i].state = FREE;
    pthread_cond_broadcast(&l->work);
}

static struct slot *
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
    struct slot *s;
    while (!(s = find_slot(l, READY, l->next))) {
        if (l->n_threads)
            pthread_cond_wait(&l->ready, &l->lock);
        else
            fill_claimed(l, claim_slot(l));
    }
    s->state = HELD;
    l->next++;
    l->at_end = l->next % l->batches == 0;
    return s;
}

/* ---- the interface ---- */

/* Gives back a slot whose filling failed; its batch comes next again. */
static et_status
give_up(struct et_ctx *cx, struct et_loader *l, struct slot *s)
{
    et_status status = ET_FAIL(cx, s->status, "%s", s->why.message);
    pthread_mutex_lock(&l->lock);
    s->state = FREE;
    restart(l, s->number);
    pthread_mutex_unlock(&l->lock);
    return status;
}

et_status
et_loader_next(struct et_ctx *cx, struct et_loader *l, const struct et_batch **out)
{
    *out = NULL;
    struct slot *s = NULL;
    pthread_mutex_lock(&l->lock);
    bool at_end = l->at_end;
    int held = 0;
    for (int i = 0; i < l->n_slots; i++)
        held += l->slots[i].state == HELD;
    if (at_end)
        l->at_end = false;
    else if (held < MAX_HELD)
        s = wait_for_next(l);
    pthread_mutex_unlock(&l->lock);
    if (at_end)
        return ET_OK;
    if (!s)
        return ET_FAIL(cx, ET_EINVAL, "%d batches are held: release one first", held);
    if (s->n_skipped)
        et_report(cx, ET_LOG_WARN, "%s", s->skipped.message);
    if (s->status != ET_OK)
        return give_up(cx, l, s);
    *out = &s->batch;
    return ET_OK;
}

void
et_loader_release(struct et_loader *l, const struct et_batch *batch)
{
    if (!batch)
        return;
    pthread_mutex_lock(&l->lock);
    for (int i = 0; i < l->n_slots; i++)
        if (&l->slots[i].batch == batch)
            l->slots[i].state = FREE;
    pthread_cond_signal(&l->work);
    pthread_mutex_unlock(&l->lock);
}

et_status
et_loader_seek(struct et_ctx *cx, struct et_loader *l, int64_t epoch, int64_t batch)
{
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
    struct et_loader *locked = (struct et_loader *)l;
    pthread_mutex_lock(&locked->lock);
    *out = (struct et_loader_info){
        .batches_per_epoch = l->batches,
        .samples_per_epoch = l->samples,
        .batch_size = l->batch_size,
        .workers = l->n_threads,
        .corrupt = l->n_corrupt,
        .x_desc = l->x_desc,
        .target_desc = l->target_desc,
    };
    pthread_mutex_unlock(&locked->lock);
}

/* ---- beginning and end ---- */

static et_status
check_config(struct et_ctx *cx, struct et_loader *l)
{
    const struct et_data_options *o = l->data->common;
    const char *name = l->data->class->info.name;
    if (l->config.world_size < 1)
        l->config.world_size = 1;
    ET_ASSERT(l->config.rank >= 0 && l->config.rank < l->config.world_size);
    if (o->batch_size < 1)
        return ET_FAIL(cx, ET_EINVAL, "%s: batch_size is not set", name);
    if (o->batch_size % l->config.world_size)
        return ET_FAIL(cx, ET_EINVAL, "batch %" PRId64 " is not divisible by %d ranks",
                       o->batch_size, l->config.world_size);
    return ET_OK;
}

/* How long an epoch is. */
static et_status
count_batches(struct et_ctx *cx, struct et_loader *l)
{
    const struct et_data_options *o = l->data->common;
    const struct et_data_facts *f = &l->data->facts;
    l->n = f->kind == ET_DATA_TOKENS ? count_windows(f, o->seq_len, l->config.train)
                                     : f->n_samples;
    l->batch_size = o->batch_size;
    l->batches = (l->n + (o->drop_last ? 0 : o->batch_size - 1)) / o->batch_size;
    if (o->subset_num_batches == 0 || l->batches == 0)
        return ET_FAIL(cx, ET_EINVAL,
                       "%s: an epoch has no batch: %" PRId64 " samples, "
                       "batch_size %" PRId64 ", subset_num_batches %" PRId64,
                       l->data->class->info.name, l->n, o->batch_size,
                       o->subset_num_batches);
    if (o->subset_num_batches > 0 && o->subset_num_batches < l->batches)
        l->batches = o->subset_num_batches;
    l->samples = l->batches * o->batch_size < l->n ? l->batches * o->batch_size : l->n;
    l->max_corrupt = f->kind == ET_DATA_IMAGES ? (int64_t)(o->max_corrupt * l->n) : 0;
    return ET_OK;
}

static et_status
describe(struct et_ctx *cx, struct et_loader *l)
{
    const struct et_data_options *o = l->data->common;
    const struct et_data_facts *f = &l->data->facts;
    int64_t N = l->batch_size / l->config.world_size;
    if (f->kind == ET_DATA_TOKENS) {
        et_desc_init(&l->x_desc, ET_I32, 2, (int64_t[]){N, o->seq_len}, ET_ROW_MAJOR);
        l->target_desc = l->x_desc;
        return ET_OK;
    }
    struct eti_pipeline *p = &l->pipeline;
    ET_TRY(eti_pipeline_init(cx, p, f, o->resolution, &o->transforms));
    et_desc_init(&l->x_desc, ET_F32, 4, (int64_t[]){N, f->C, p->out_h, p->out_w},
                 ET_CHANNELS_LAST);
    et_desc_init(&l->target_desc, ET_I32, 1, &N, ET_ROW_MAJOR);
    l->x_stride = f->C * p->out_h * p->out_w;
    l->raw_bytes = (int64_t)f->C * f->H * f->W;
    return ET_OK;
}

static int
choose_workers(const struct et_loader *l)
{
    if (l->data->common->workers != ET_INT_UNSET)
        return (int)l->data->common->workers;
    long cores = sysconf(_SC_NPROCESSORS_ONLN);
    if (l->raw_bytes <= INLINE_SAMPLE_BYTES || cores <= 2)
        return 0; /* a busy neighbour costs the compute threads more than it saves */
    return cores / 4 < MAX_AUTO_WORKERS ? (int)(cores / 4) + 1 : MAX_AUTO_WORKERS;
}

static et_status
view_first(struct et_ctx *cx, const struct et_tensor *whole, int64_t n,
           struct et_tensor **out)
{
    struct et_desc d = whole->desc;
    d.shape[0] = n;
    return et_tensor_view(cx, whole->storage, 0, &d, whole->name, out);
}

/* The slot's memory as tensors of the device, so that a step reads it where it lies. */
static et_status
make_tensors(struct et_ctx *cx, struct et_loader *l, struct slot *s)
{
    const struct et_desc *x = &l->x_desc, *t = &l->target_desc;
    struct et_device *dev = l->config.dev;
    ET_TRY(et_tensor_new(cx, dev, x->dtype, x->ndim, x->shape,
                         x->ndim == 4 ? ET_CHANNELS_LAST : ET_ROW_MAJOR, "x",
                         &s->full.x));
    ET_TRY(et_tensor_new(cx, dev, t->dtype, t->ndim, t->shape, ET_ROW_MAJOR, "target",
                         &s->full.target));
    s->batch.x = et_tensor_data(s->full.x);
    s->batch.target = et_tensor_data(s->full.target);
    int64_t first, n = rank_slice(l, l->batches - 1, &first);
    if (n == 0 || n == x->shape[0])
        return ET_OK;
    ET_TRY(view_first(cx, s->full.x, n, &s->last.x));
    return view_first(cx, s->full.target, n, &s->last.target);
}

static et_status
make_slot(struct et_ctx *cx, struct et_loader *l, struct slot *s)
{
    struct et_batch *b = &s->batch;
    struct et_device_info info = {0};
    b->x_desc = l->x_desc;
    b->target_desc = l->target_desc;
    if (l->config.dev)
        et_device_get_info(l->config.dev, &info);
    if (info.host_memory) {
        ET_TRY(make_tensors(cx, l, s));
    } else {
        ET_TRY(et_alloc(cx, et_desc_bytes(&b->x_desc), &b->x));
        ET_TRY(et_alloc(cx, et_desc_bytes(&b->target_desc), (void **)&b->target));
    }
    if (l->data->facts.kind == ET_DATA_TOKENS)
        return ET_OK;
    return et_alloc(cx, 2 * (size_t)l->raw_bytes + eti_pipeline_scratch(&l->pipeline),
                    (void **)&s->scratch);
}

static void
free_slot(struct et_ctx *cx, struct slot *s)
{
    if (!s->full.x) {
        et_free(cx, s->batch.x);
        et_free(cx, s->batch.target);
    }
    et_tensor_free(&s->last.x);
    et_tensor_free(&s->last.target);
    et_tensor_free(&s->full.x);
    et_tensor_free(&s->full.target);
    et_free(cx, s->scratch);
}

static et_status
start_workers(struct et_ctx *cx, struct et_loader *l, int n)
{
    /* Signals are for the thread that knows what to do about them. */
    sigset_t all, before;
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before);
    int error = 0;
    while (l->n_threads < n && !error) {
        error = pthread_create(&l->threads[l->n_threads], NULL, worker, l);
        if (!error)
            l->n_threads++;
    }
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    if (error)
        return ET_FAIL(cx, ET_EIO, "cannot start loader thread %d of %d: %s",
                       l->n_threads + 1, n, strerror(error));
    return ET_OK;
}

static et_status
build(struct et_ctx *cx, struct et_loader *l)
{
    ET_TRY(check_config(cx, l));
    ET_TRY(count_batches(cx, l));
    ET_TRY(describe(cx, l));
    int workers = choose_workers(l);
    int n_slots = MAX_HELD + workers;
    ET_TRY(et_alloc(cx, (size_t)n_slots * sizeof *l->slots, (void **)&l->slots));
    l->n_slots = n_slots;
    for (int i = 0; i < n_slots; i++)
        ET_TRY(make_slot(cx, l, &l->slots[i]));
    ET_TRY(et_alloc(cx, (size_t)l->max_corrupt * sizeof *l->corrupt,
                    (void **)&l->corrupt));
    ET_TRY(et_alloc(cx, (size_t)workers * sizeof *l->threads, (void **)&l->threads));
    return start_workers(cx, l, workers);
}

et_status
et_loader_new(struct et_ctx *cx, struct et_dataset *data,
              const struct et_loader_config *config, struct et_loader **out)
{
    struct et_loader *l;
    *out = NULL;
    ET_TRY(et_alloc(cx, sizeof *l, (void **)&l));
    l->cx = cx;
    l->data = data;
    l->config = *config;
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
    struct et_loader *l = *loader;
    if (!l)
        return;
    pthread_mutex_lock(&l->lock);
    l->stop = true;
    pthread_cond_broadcast(&l->work);
    pthread_mutex_unlock(&l->lock);
    for (int i = 0; i < l->n_threads; i++)
        pthread_join(l->threads[i], NULL);
    for (int i = 0; i < l->n_slots; i++)
        free_slot(l->cx, &l->slots[i]);
    et_free(l->cx, l->slots);
    et_free(l->cx, l->corrupt);
    et_free(l->cx, l->threads);
    pthread_mutex_destroy(&l->lock);
    pthread_cond_destroy(&l->work);
    pthread_cond_destroy(&l->ready);
    et_free(l->cx, l);
    *loader = NULL;
}
