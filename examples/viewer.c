/* SPDX-License-Identifier: Apache-2.0 */
/* viewer.c: a viewer of a run, written from etude-events(7) alone: libzmq and
 * msgpack-c, nothing of etude.
 *
 *     viewer $XDG_RUNTIME_DIR/etude/brisk-otter.sock [RECORDS [pause|continue|...]]
 *
 * prints the records of a run as they come, a line each, and ends after RECORDS of them
 * or with the run. With an operation it first gives that command, prints what came of
 * it, and ends no sooner: the record of a command may come before the answer. Build it
 * with
 *
 *     cc viewer.c -o viewer $(pkg-config --cflags --libs libzmq msgpack-c) */
#define _POSIX_C_SOURCE 200809L /* clock_gettime, also with -std=c11 */
#include <msgpack.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <time.h>
#include <zmq.h>

enum { CREDIT = 256, WAIT_MS = 1000, PATIENCE_MS = 10000 };

/* Elements of a frame. */
enum { MAJOR, MINOR, KIND, RUN, INCARNATION, HSEQ, RANK, RSEQ, T_MONO, BODY, FRAME };

struct viewer {
    void *socket;
    char run[16];        /* from WELCOME on */
    int64_t incarnation; /* likewise */
    int64_t taken;       /* messages since credit was given */
    int64_t printed;
    bool waits; /* for what comes of its command */
};

/* ---- writing ---- */

static void
put_text(msgpack_packer *p, const char *text)
{
    msgpack_pack_str_with_body(p, text, strlen(text));
}

/* The ten elements of a frame but the last; the body is a map of N keys. */
static void
begin(const struct viewer *v, msgpack_packer *p, const char *kind, size_t n)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    msgpack_pack_array(p, FRAME);
    msgpack_pack_int(p, 1); /* the version this was written for */
    msgpack_pack_int(p, 0);
    put_text(p, kind);
    msgpack_pack_bin_with_body(p, v->run, sizeof v->run);
    msgpack_pack_int64(p, v->incarnation);
    msgpack_pack_int(p, 0); /* hseq, rank and rseq are of records */
    msgpack_pack_int(p, 0);
    msgpack_pack_int(p, 0);
    msgpack_pack_int64(p, now.tv_sec * 1000000000LL + now.tv_nsec);
    msgpack_pack_map(p, n);
}

static void
send_buffer(struct viewer *v, msgpack_sbuffer *b)
{
    if (zmq_send(v->socket, b->data, b->size, ZMQ_DONTWAIT) < 0)
        fprintf(stderr, "viewer: %s\n", zmq_strerror(zmq_errno()));
    msgpack_sbuffer_destroy(b);
}

static void
say_hello(struct viewer *v)
{
    msgpack_sbuffer b;
    msgpack_packer p;
    msgpack_sbuffer_init(&b);
    msgpack_packer_init(&p, &b, msgpack_sbuffer_write);
    begin(v, &p, "HELLO", 3);
    put_text(&p, "minor");
    msgpack_pack_int(&p, 0);
    put_text(&p, "stream");
    msgpack_pack_true(&p);
    put_text(&p, "credit");
    msgpack_pack_int(&p, CREDIT);
    send_buffer(v, &b);
}

/* Shows that we are here, and lets the hub send as many messages as we have read. */
static void
ping(struct viewer *v)
{
    msgpack_sbuffer b;
    msgpack_packer p;
    msgpack_sbuffer_init(&b);
    msgpack_packer_init(&p, &b, msgpack_sbuffer_write);
    begin(v, &p, "PING", 1);
    put_text(&p, "credit");
    msgpack_pack_int64(&p, v->taken);
    v->taken = 0;
    send_buffer(v, &b);
}

static void
command(struct viewer *v, const char *op)
{
    char id[16];
    msgpack_sbuffer b;
    msgpack_packer p;
    if (getrandom(id, sizeof id, 0) != sizeof id)
        return;
    msgpack_sbuffer_init(&b);
    msgpack_packer_init(&p, &b, msgpack_sbuffer_write);
    begin(v, &p, "CMD", 4);
    put_text(&p, "id");
    msgpack_pack_bin_with_body(&p, id, sizeof id);
    put_text(&p, "op");
    put_text(&p, op);
    put_text(&p, "ttl_ms");
    msgpack_pack_int(&p, 5000);
    put_text(&p, "args");
    msgpack_pack_map(&p, 0);
    send_buffer(v, &b);
}

/* ---- reading ---- */

static bool
is(const msgpack_object *o, const char *text)
{
    return o->type == MSGPACK_OBJECT_STR && o->via.str.size == strlen(text) &&
           memcmp(o->via.str.ptr, text, o->via.str.size) == 0;
}

static const msgpack_object *
find(const msgpack_object *map, const char *key)
{
    static const msgpack_object nothing = {.type = MSGPACK_OBJECT_NIL};
    for (uint32_t i = 0; i < map->via.map.size; i++)
        if (is(&map->via.map.ptr[i].key, key))
            return &map->via.map.ptr[i].val;
    return &nothing;
}

/* A number or a text of the body, as a word. */
static void
print_value(const char *name, const msgpack_object *o)
{
    if (o->type == MSGPACK_OBJECT_POSITIVE_INTEGER)
        printf(" %s=%llu", name, (unsigned long long)o->via.u64);
    else if (o->type == MSGPACK_OBJECT_FLOAT64)
        printf(" %s=%.9g", name, o->via.f64);
    else if (o->type == MSGPACK_OBJECT_STR)
        printf(" %s=%.*s", name, (int)o->via.str.size, o->via.str.ptr);
}

static void
print_record(struct viewer *v, const msgpack_object *f)
{
    char name[128];
    const msgpack_object *body = &f[BODY], *m = find(body, "m");
    if (m->type != MSGPACK_OBJECT_MAP)
        m = find(body, "f");
    printf("%llu %.*s", (unsigned long long)f[HSEQ].via.u64, (int)f[KIND].via.str.size,
           f[KIND].via.str.ptr);
    print_value("ba", find(body, "ba"));
    for (uint32_t i = 0; m->type == MSGPACK_OBJECT_MAP && i < m->via.map.size; i++) {
        const msgpack_object *key = &m->via.map.ptr[i].key;
        snprintf(name, sizeof name, "%.*s", (int)key->via.str.size, key->via.str.ptr);
        print_value(name, &m->via.map.ptr[i].val);
    }
    print_value("text", find(body, "text"));
    printf("\n");
    v->printed += find(body, "more")->type == MSGPACK_OBJECT_NIL;
}

/* One frame; false: that was the end. */
static bool
on_frame(struct viewer *v, const msgpack_object *f, const char *op)
{
    static const char *const talk[] = {"WELCOME",  "SNAP_BEGIN", "RECEIVED", "APPLIED",
                                       "REJECTED", "EXPIRED",    "REFUSE",   "BYE"};
    static const char *const keys[] = {"name", "role", "s",    "bytes",
                                       "step", "rev",  "code", "text"};
    const msgpack_object *kind = &f[KIND];
    bool is_record = kind->via.str.size > 0 && kind->via.str.ptr[0] >= 'a';
    if (is(kind, "WELCOME")) {
        memcpy(v->run, f[RUN].via.bin.ptr, sizeof v->run);
        v->incarnation = (int64_t)f[INCARNATION].via.u64;
        if (op)
            command(v, op);
    }
    if (is_record)
        print_record(v, f);
    if (is_record || is(kind, "SNAP_CHUNK"))
        v->taken++;
    for (size_t i = 0; i < sizeof talk / sizeof *talk; i++) {
        if (!is(kind, talk[i]))
            continue;
        printf("%s", talk[i]);
        for (size_t k = 0; k < sizeof keys / sizeof *keys; k++)
            print_value(keys[k], find(&f[BODY], keys[k]));
        printf("\n");
    }
    fflush(stdout);
    if (is(kind, "APPLIED") || is(kind, "REJECTED") || is(kind, "EXPIRED"))
        v->waits = false;
    return !is(kind, "BYE") && !is(kind, "REFUSE");
}

/* The message as ten elements of the right types. (A hub is not out to harm us; a
 * viewer of others' hubs looks through the bytes first, as etude-events(7) says.) */
static bool
is_frame(const msgpack_object *o)
{
    const msgpack_object *f = o->via.array.ptr;
    return o->type == MSGPACK_OBJECT_ARRAY && o->via.array.size == FRAME &&
           f[MAJOR].type == MSGPACK_OBJECT_POSITIVE_INTEGER && f[MAJOR].via.u64 == 1 &&
           f[KIND].type == MSGPACK_OBJECT_STR && f[RUN].type == MSGPACK_OBJECT_BIN &&
           f[RUN].via.bin.size == 16 && f[BODY].type == MSGPACK_OBJECT_MAP;
}

static bool
read_message(struct viewer *v, zmq_msg_t *m, const char *op)
{
    msgpack_unpacked u;
    size_t at = 0;
    bool goes_on = true;
    msgpack_unpacked_init(&u);
    if (msgpack_unpack_next(&u, zmq_msg_data(m), zmq_msg_size(m), &at) ==
            MSGPACK_UNPACK_SUCCESS &&
        is_frame(&u.data))
        goes_on = on_frame(v, u.data.via.array.ptr, op);
    msgpack_unpacked_destroy(&u);
    return goes_on;
}

int
main(int argc, char **argv)
{
    struct viewer v = {0};
    char address[256];
    int64_t most = argc > 2 ? strtoll(argv[2], NULL, 10) : INT64_MAX;
    const char *op = argc > 3 ? argv[3] : NULL;
    v.waits = op != NULL;
    int silent = 0, zero = 0;
    bool goes_on = true;
    if (argc < 2) {
        fprintf(stderr, "usage: viewer SOCKET [RECORDS [OPERATION]]\n");
        return 64;
    }
    snprintf(address, sizeof address, "ipc://%s", argv[1]);
    void *zmq = zmq_ctx_new();
    v.socket = zmq_socket(zmq, ZMQ_DEALER);
    zmq_setsockopt(v.socket, ZMQ_LINGER, &zero, sizeof zero);
    if (zmq_connect(v.socket, address) != 0) {
        fprintf(stderr, "viewer: %s: %s\n", address, zmq_strerror(zmq_errno()));
        return 69;
    }
    say_hello(&v);
    while (goes_on && (v.printed < most || v.waits) && silent < PATIENCE_MS) {
        zmq_pollitem_t item = {.socket = v.socket, .events = ZMQ_POLLIN};
        if (zmq_poll(&item, 1, WAIT_MS) == 0) {
            silent += WAIT_MS;
            ping(&v);
            continue;
        }
        silent = 0;
        zmq_msg_t m;
        zmq_msg_init(&m);
        while (goes_on && (v.printed < most || v.waits) &&
               zmq_msg_recv(&m, v.socket, ZMQ_DONTWAIT) >= 0)
            goes_on = read_message(&v, &m, op);
        zmq_msg_close(&m);
        if (v.taken >= CREDIT / 2)
            ping(&v);
    }
    zmq_close(v.socket);
    zmq_ctx_term(zmq);
    return silent < PATIENCE_MS ? 0 : 69;
}
