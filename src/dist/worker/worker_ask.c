/* SPDX-License-Identifier: Apache-2.0 */
/* worker_ask.c: what others ask of a worker: see worker.h. */
#include "config.h"

#include <errno.h>
#include <jansson.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <sys/random.h>
#include <time.h>

#include "core/base/seams.h"
#include "dist/wire/errors.h"
#include "dist/worker/worker.h"

enum { FILES = 64 }; /* that a recipe includes */
static const double LOAD_SECONDS = 3;
static const double LOOK = 1; /* seconds between two looks that count, at most */

struct asking {
    struct et_ctx *cx;
    struct etd_channel *channel;
    double end, looked;
};

/* Seconds that are left. Time in which the machine was suspended does not count: of the
 * time since the last look no more than LOOK does. */
static double
time_left(struct asking *a)
{
    double now = eti_monotonic(a->cx), deaf = now - a->looked - LOOK;
    if (deaf > 0)
        a->end += deaf;
    a->looked = now;
    return a->end - now;
}

static et_status
nobody(struct asking *a, const char *why)
{
    return ETD_FAIL(a->cx, ET_ENOENT, UNREACHABLE, "%s", why);
}

/* The next frame of one of the kinds WANTED or REJECTED or EXPIRED, within the time. */
static et_status
wait_for(struct asking *a, enum etd_kind wanted, struct etd_frame *f)
{
    char text[256];
    struct etd_fault fault;
    for (;;) {
        const char *bytes, *why;
        size_t n;
        double left = time_left(a);
        struct pollfd p = {.fd = etd_channel_fd(a->channel), .events = POLLIN};
        switch (etd_channel_receive(a->channel, &bytes, &n)) {
        case ETD_GOT_NOTHING:
            if (left <= 0)
                return nobody(a, "the worker does not answer");
            (void)poll(&p, 1, (int)(1000 * (left < LOOK ? left : LOOK)) + 1);
            continue;
        case ETD_GOT_GONE:
            why = etd_channel_why_gone(a->channel);
            return nobody(a, why ? why : "the worker is not reachable");
        case ETD_GOT_DENIED:
            return ETD_FAIL(a->cx, ET_ECANCELED, KEYS,
                            "the key is refused, or the worker's is not the one known");
        case ETD_GOT_MESSAGE:
            break;
        }
        et_status status = etd_read(bytes, n, f, &fault);
        if (status == ET_ENOTSUP)
            return ETD_FAIL(a->cx, status, PROTOCOL,
                            "worker speaks protocol %d, this is %d", f->head.major,
                            ETD_MAJOR);
        if (status != ET_OK)
            return ETD_FAIL(a->cx, status, UNREACHABLE, "the worker's answer: %s",
                            fault.why);
        if (f->head.kind == wanted || f->head.kind == ETD_REJECTED ||
            f->head.kind == ETD_EXPIRED)
            return ET_OK;
        if (f->head.kind == ETD_REFUSE || f->head.kind == ETD_BYE)
            return ETD_FAIL(a->cx, ET_ECANCELED, TURNED_AWAY, "the worker says: %s",
                            etd_get_text(&f->body, "text", text, sizeof text));
    }
}

static et_status
send_frame(struct asking *a, struct etd_out *o)
{
    size_t n = etd_end(o);
    if (n == 0)
        return ETD_FAIL(a->cx, ET_EINVAL, ARGUMENT, "too much for one message");
    return etd_channel_send(a->channel, o->bytes, n) ? ET_OK
                                                     : nobody(a, "the line is full");
}

static et_status
begin(struct et_ctx *cx, const struct etd_channel_options *to, double seconds,
      struct asking *a, struct etd_frame *welcome)
{
    char bytes[ETD_CONTROL_BYTES];
    struct etd_out o;
    const struct etd_head head = {.kind = ETD_HELLO};
    double now = eti_monotonic(cx);
    *a = (struct asking){.cx = cx, .end = now + seconds, .looked = now};
    ET_TRY(etd_channel_open(cx, to, &a->channel));
    etd_begin(&o, bytes, sizeof bytes, &head, 2);
    etd_put_int(&o, "minor", ETD_MINOR);
    etd_put_bool(&o, "worker", true);
    et_status status = send_frame(a, &o);
    if (status == ET_OK)
        status = wait_for(a, ETD_WELCOME, welcome);
    if (status != ET_OK)
        etd_channel_close(&a->channel);
    return status;
}

/* Says that it was all. */
static void
finish(struct asking *a)
{
    char bytes[256];
    struct etd_out o;
    const struct etd_head head = {.kind = ETD_BYE};
    etd_begin(&o, bytes, sizeof bytes, &head, 0);
    (void)etd_channel_send(a->channel, bytes, etd_end(&o));
    etd_channel_finish(a->channel);
    etd_channel_close(&a->channel);
}

/* What WELCOME says, and how long a PING takes. */
static et_status
take_info(struct asking *a, struct etd_frame *f, struct etd_worker_info *out)
{
    char bytes[256];
    struct etd_out o;
    const struct etd_head head = {.kind = ETD_PING};
    *out = (struct etd_worker_info){0};
    etd_get_text(&f->body, "name", out->name, sizeof out->name);
    etd_get_text(&f->body, "version", out->version, sizeof out->version);
    etd_get_text(&f->body, "role", out->role, sizeof out->role);
    out->cores = etd_get_int(&f->body, "cores", 0);
    out->gpus = etd_get_int(&f->body, "gpus", 0);
    double sent = eti_monotonic(a->cx);
    etd_begin(&o, bytes, sizeof bytes, &head, 0);
    ET_TRY(send_frame(a, &o));
    ET_TRY(wait_for(a, ETD_PONG, f));
    out->rtt = eti_monotonic(a->cx) - sent;
    return ET_OK;
}

et_status
etd_worker_info(struct et_ctx *cx, const struct etd_channel_options *to, double seconds,
                struct etd_worker_info *out)
{
    struct asking a;
    struct etd_frame f;
    ET_TRY(begin(cx, to, seconds, &a, &f));
    et_status status = take_info(&a, &f, out);
    finish(&a);
    return status;
}

static et_status
take_machine(struct asking *a, struct etd_host_facts *out)
{
    char bytes[256];
    struct etd_out o;
    struct etd_frame f;
    const struct etd_head head = {.kind = ETD_MACHINE};
    etd_begin(&o, bytes, sizeof bytes, &head, 0);
    ET_TRY(send_frame(a, &o));
    ET_TRY(wait_for(a, ETD_MACHINE, &f));
    etd_host_read(&f, out);
    return ET_OK;
}

/* Bytes a second of 4 MiB, or of what came of them 3 s after the first. */
static et_status
take_bandwidth(struct asking *a, double rtt, double *out)
{
    char bytes[256];
    struct etd_out o;
    struct etd_frame f;
    struct etd_value data;
    const struct etd_head head = {.kind = ETD_LOAD};
    double sent = eti_monotonic(a->cx), took = 0, all = 0;
    bool done = false;
    etd_begin(&o, bytes, sizeof bytes, &head, 1);
    etd_put_int(&o, "bytes", ETD_LOAD_MOST);
    ET_TRY(send_frame(a, &o));
    while (!done) {
        et_status status = wait_for(a, ETD_LOAD, &f);
        if (status != ET_OK && (all == 0 || time_left(a) > 0))
            return status;
        if (status != ET_OK)
            break; /* it is slow: the part that came says how */
        double now = eti_monotonic(a->cx);
        took = now - sent - rtt;
        if (all == 0)
            a->end = now + LOAD_SECONDS;
        all += etd_find(&f.body, "data", &data) ? (double)data.n : 0;
        done = etd_get_bool(&f.body, "done", false);
    }
    et_error_clear(a->cx);
    *out = all / (took > 1e-6 ? took : 1e-6);
    return ET_OK;
}

et_status
etd_worker_test(struct et_ctx *cx, const struct etd_channel_options *to, double seconds,
                struct etd_worker_test *out)
{
    struct asking a;
    struct etd_frame f;
    *out = (struct etd_worker_test){0};
    ET_TRY(begin(cx, to, seconds, &a, &f));
    et_status status = take_info(&a, &f, &out->info);
    if (status == ET_OK)
        status = take_machine(&a, &out->host);
    if (status == ET_OK)
        status = take_bandwidth(&a, out->info.rtt, &out->bandwidth);
    finish(&a);
    return status;
}

et_status
etd_worker_runs(struct et_ctx *cx, const struct etd_channel_options *to, double seconds,
                struct json_t **out)
{
    struct asking a;
    struct etd_frame f;
    char bytes[256];
    struct etd_out o;
    const struct etd_head head = {.kind = ETD_RUNS};
    bool done = false;
    *out = NULL;
    ET_TRY(begin(cx, to, seconds, &a, &f));
    json_t *list = json_array();
    etd_begin(&o, bytes, sizeof bytes, &head, 0);
    et_status status = send_frame(&a, &o);
    while (status == ET_OK && !done) {
        struct etd_value facts;
        status = wait_for(&a, ETD_RUNS, &f);
        if (status != ET_OK)
            break;
        done = etd_get_bool(&f.body, "done", false);
        if (etd_find(&f.body, "facts", &facts) && facts.type == ETD_IS_BIN)
            (void)json_array_append_new(list,
                                        json_loadb(facts.bytes, facts.n, 0, NULL));
    }
    finish(&a);
    if (status == ET_OK)
        *out = list;
    else
        json_decref(list);
    return status;
}

/* Three keys: paths, sizes, and the bytes of all files, one after the other. */
static et_status
put_files(struct asking *a, struct etd_out *o, const struct etd_launch_there *l)
{
    const char *path[FILES];
    int64_t size[FILES];
    size_t all = 0;
    void *block;
    if (l->n_files > FILES)
        return ETD_FAIL(a->cx, ET_EINVAL, ARGUMENT, "more than %d files", FILES);
    for (int i = 0; i < l->n_files; i++) {
        path[i] = l->file[i].path;
        size[i] = (int64_t)l->file[i].bytes;
        all += l->file[i].bytes;
    }
    ET_TRY(et_alloc(a->cx, all + 1, &block));
    for (size_t i = 0, at = 0; i < (size_t)l->n_files; at += l->file[i++].bytes)
        memcpy((char *)block + at, l->file[i].text, l->file[i].bytes);
    etd_put_texts(o, "paths", path, l->n_files);
    etd_put_ints(o, "sizes", size, l->n_files);
    etd_put_bin(o, "files", block, all);
    et_free(a->cx, block);
    return ET_OK;
}

static et_status
ask_start(struct asking *a, const struct etd_launch_there *l, const unsigned char *id,
          struct etd_answer *out)
{
    struct etd_frame f;
    struct etd_out o;
    const struct etd_head head = {.kind = ETD_START};
    void *block;
    ET_TRY(et_alloc(a->cx, ETD_CHUNK_BYTES, &block));
    etd_begin(&o, block, ETD_CHUNK_BYTES, &head,
              3 + !!l->name + (l->gpus > 0) + 3 * (l->n_files > 0));
    etd_put_bin(&o, "id", id, ETD_CMD_ID);
    etd_put_bin(&o, "recipe", l->recipe, l->bytes);
    etd_put_texts(&o, "args", l->args, l->n);
    if (l->name)
        etd_put_text(&o, "name", l->name);
    if (l->gpus > 0)
        etd_put_int(&o, "gpus", l->gpus);
    et_status status = l->n_files > 0 ? put_files(a, &o, l) : ET_OK;
    if (status == ET_OK)
        status = send_frame(a, &o);
    et_free(a->cx, block);
    while (status == ET_OK) {
        status = wait_for(a, ETD_APPLIED, &f);
        if (status == ET_OK && etd_answer_read(&f, out) &&
            memcmp(out->id, id, ETD_CMD_ID) == 0)
            break;
    }
    return status;
}

et_status
etd_worker_start(struct et_ctx *cx, const struct etd_channel_options *to,
                 double seconds, const struct etd_launch_there *l,
                 struct etd_answer *out)
{
    const struct timespec pause = {0, 300000000L};
    double end = eti_monotonic(cx) + seconds;
    unsigned char id[ETD_CMD_ID];
    if (getrandom(id, sizeof id, 0) != sizeof id)
        return ET_FAIL(cx, ET_EIO, "no random bytes: %s", strerror(errno));
    for (bool asked = false;;) {
        struct asking a;
        struct etd_frame f;
        et_status status = begin(cx, to, end - eti_monotonic(cx), &a, &f);
        bool reached = status == ET_OK;
        if (reached) {
            status = ask_start(&a, l, id, out);
            finish(&a);
        }
        asked = asked || reached;
        /* The channel broke: connects again and repeats the request. */
        if (status != ET_ENOENT || !asked || eti_monotonic(cx) + 1 >= end)
            return status;
        et_error_clear(cx);
        nanosleep(&pause, NULL);
    }
}
