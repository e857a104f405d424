/* SPDX-License-Identifier: Apache-2.0 */
/* transcript.c: a conversation of each version that was ever released is understood,
 * and this version still writes its own, byte for byte.
 *
 * t/dist/transcripts/MAJOR.MINOR has a line for each message: what it says, in words
 * that this program makes from it, a tab, and its bytes in hexadecimal.
 * "t/dist/transcript write" prints the lines of this version: for a file that does not
 * exist yet. */
#include "config.h"

#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "dist/wire/wire.h"
#include "dist/worker/host.h"
#include "t/tap.h"

enum { LINE = 4096, MESSAGE = 1024 };

static const struct etd_head head = {
    .run = "\x10\x32\x54\x76\x98\xba\xdc\xfe\x01\x23\x45\x67\x89\xab\xcd\xef",
    .incarnation = 1,
    .t_mono_ns = 12345678901,
};

/* ---- this version's conversation ---- */

static size_t
talk(struct etd_out *o, char *bytes, enum etd_kind kind, int n_keys)
{
    struct etd_head h = head;
    h.kind = kind;
    if (kind == ETD_HELLO || kind == ETD_REFUSE)
        memset(h.run, 0, sizeof h.run), h.incarnation = 0;
    etd_begin(o, bytes, MESSAGE, &h, n_keys);
    return 0;
}

static const struct et_log_entry numbers[] = {
    {"loss/train/total", 0.693147180559945},
    {"lr-DecoupledSGDW/group0", 0.1},
};
static const struct etd_command command = {
    .id = {1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16},
    .op = ETD_OP_SET,
    .if_rev = 2,
    .ttl_ms = 5000,
    .key = "optimizer.lr",
    .value = "0.05",
};

static const struct etd_command note = {
    .id = {16, 15, 14, 13, 12, 11, 10, 9, 8, 7, 6, 5, 4, 3, 2, 1},
    .op = ETD_OP_ANNOTATE,
    .if_rev = -1,
    .ttl_ms = 5000,
    .value = "new disks from here",
};
static const struct etd_host_facts machine = {
    .uptime = 3542400,
    .disk_free = 812000000000,
    .runs = 1,
    .run = "brisk-otter",
    .driver = "580.95",
    .n_gpus = 1,
    .gpu = {{.name = "H100", .util = 0.875, .used = 64e9, .total = 80e9}},
};

/* Message I into BYTES: its length; 0: there are no more. */
static size_t
message(int i, char *bytes)
{
    struct etd_out o;
    struct etd_answer a = {.step = 3825, .rev = 3, .code = 5008};
    struct et_record r = {.kind = ET_RECORD_BATCH,
                          .t = 1763647000.25,
                          .seq = 4,
                          .ep = 1,
                          .ba = 2,
                          .sp = 256,
                          .entry = numbers,
                          .n = 2};
    static const int64_t ba[] = {1, 2, 3825};
    static const double value[] = {2.25, 1.5, 0.125};
    static const char *const args[] = {"seed=2", "optimizer.lr=0.1"};
    int from = 0;
    memcpy(a.id, command.id, sizeof a.id);
    switch (i) {
    case 0:
        talk(&o, bytes, ETD_HELLO, 4);
        etd_put_int(&o, "minor", 0);
        etd_put_bool(&o, "stream", true);
        etd_put_int(&o, "credit", 256);
        etd_put_text(&o, "run", "brisk-otter");
        break;
    case 1:
        talk(&o, bytes, ETD_WELCOME, 7);
        etd_put_int(&o, "minor", 0);
        etd_put_text(&o, "name", "brisk-otter");
        etd_put_text(&o, "role", "operator");
        etd_put_int(&o, "beat_ms", 1000);
        etd_put_int(&o, "head", 3);
        etd_put_bool(&o, "goes_on", false);
        etd_put_int(&o, "clients", 64);
        break;
    case 2:
        talk(&o, bytes, ETD_REFUSE, 2);
        etd_put_text(&o, "code", "FULL");
        etd_put_text(&o, "text", "64 viewers are here already");
        break;
    case 3:
        talk(&o, bytes, ETD_SNAP_BEGIN, 4);
        etd_put_int(&o, "s", 3);
        etd_put_int(&o, "bytes", 3);
        etd_put_int(&o, "facts", 2);
        etd_put_bin(&o, "digest", command.id, ETD_DIGEST);
        break;
    case 4:
        talk(&o, bytes, ETD_SNAP_CHUNK, 2);
        etd_put_int(&o, "at", 0);
        etd_put_bin(&o, "data", "{}abc", 5);
        break;
    case 5:
        talk(&o, bytes, ETD_SNAP_END, 0);
        break;
    case 6:
        return etd_record_write(bytes, MESSAGE, &head, &r, &from);
    case 7:
        r.kind = ET_RECORD_LOG;
        r.text = "learning rate is high";
        r.level = ET_LOG_WARN;
        r.rank = 1;
        r.n = 0;
        return etd_record_write(bytes, MESSAGE, &head, &r, &from);
    case 8:
        r.kind = ET_RECORD_HEALTH;
        return etd_record_write(bytes, MESSAGE, &head, &r, &from);
    case 9:
        talk(&o, bytes, ETD_NACK, 2);
        etd_put_int(&o, "from", 5);
        etd_put_int(&o, "to", 9);
        break;
    case 10:
        talk(&o, bytes, ETD_HIST, 5);
        etd_put_int(&o, "id", 1);
        etd_put_text(&o, "series", "loss/train/total");
        etd_put_int(&o, "from", 1);
        etd_put_int(&o, "to", 3825);
        etd_put_int(&o, "most", 512);
        break;
    case 11:
        talk(&o, bytes, ETD_HIST, 4);
        etd_put_int(&o, "id", 1);
        etd_put_ints(&o, "ba", ba, 3);
        etd_put_doubles(&o, "t", value, 3);
        etd_put_doubles(&o, "v", value, 3);
        break;
    case 12:
        talk(&o, bytes, ETD_PING, 2);
        etd_put_int(&o, "credit", 128);
        etd_put_bool(&o, "digest", true);
        break;
    case 13:
        talk(&o, bytes, ETD_PONG, 2);
        etd_put_int(&o, "at", 9);
        etd_put_bin(&o, "digest", command.id, ETD_DIGEST);
        break;
    case 14:
        return etd_command_write(bytes, MESSAGE, &head, &command);
    case 15:
    case 16:
    case 17:
    case 18:
        a.kind = (enum etd_kind)(ETD_RECEIVED + i - 15);
        snprintf(a.text, sizeof a.text, "%s",
                 a.kind == ETD_APPLIED    ? "0.1 -> 0.05"
                 : a.kind == ETD_REJECTED ? "lr 1e9 outside (0, 10]"
                                          : "");
        return etd_answer_write(bytes, MESSAGE, &head, &a);
    case 19:
        talk(&o, bytes, ETD_BYE, 2);
        etd_put_text(&o, "code", "MALFORMED");
        etd_put_int(&o, "at", 12);
        break;
    case 20:
        talk(&o, bytes, ETD_RUNS, 2);
        etd_put_int(&o, "i", 0);
        etd_put_bin(&o, "facts", "{}", 2);
        break;
    case 21:
        talk(&o, bytes, ETD_START, 3);
        etd_put_bin(&o, "id", command.id, sizeof command.id);
        etd_put_bin(&o, "recipe", "seed: 1\n", 8);
        etd_put_texts(&o, "args", args, 2);
        break;
    case 22:
        return etd_command_write(bytes, MESSAGE, &head, &note);
    case 23:
        talk(&o, bytes, ETD_FACTS, 1);
        etd_put_bin(&o, "facts", "{\"state\":\"paused\"}", 18);
        break;
    case 24: {
        struct etd_head there = head;
        there.kind = ETD_MACHINE;
        return etd_host_write(bytes, MESSAGE, &there, &machine);
    }
    case 25:
        talk(&o, bytes, ETD_LOAD, 1);
        etd_put_int(&o, "bytes", 4194304);
        break;
    case 26:
        talk(&o, bytes, ETD_LOAD, 2);
        etd_put_bin(&o, "data", "\0\0\0", 3);
        etd_put_bool(&o, "done", true);
        break;
    case 27:
        talk(&o, bytes, ETD_FILE, 3);
        etd_put_text(&o, "file", "log");
        etd_put_int(&o, "rank", 3);
        etd_put_int(&o, "at", -1);
        break;
    case 28:
        talk(&o, bytes, ETD_FILE, 5);
        etd_put_text(&o, "file", "log");
        etd_put_int(&o, "rank", 3);
        etd_put_int(&o, "at", 1048576);
        etd_put_int(&o, "size", 2097152);
        etd_put_bin(&o, "data", "info saved\n", 11);
        break;
    default:
        return 0;
    }
    return etd_end(&o);
}

/* ---- in words ---- */

static void add(char *text, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
static void
add(char *text, const char *fmt, ...)
{
    size_t n = strlen(text);
    va_list args;
    va_start(args, fmt);
    vsnprintf(text + n, LINE - n, fmt, args);
    va_end(args);
}

static void
say_value(char *text, const struct etd_value *v, const unsigned char *end)
{
    struct etd_value inside;
    const unsigned char *at = v->at;
    switch (v->type) {
    case ETD_IS_NIL:
        add(text, "nil");
        break;
    case ETD_IS_BOOL:
        add(text, v->i ? "true" : "false");
        break;
    case ETD_IS_INT:
        add(text, "%" PRId64, v->i);
        break;
    case ETD_IS_DOUBLE:
        add(text, "%.17g!", v->d);
        break;
    case ETD_IS_TEXT:
        add(text, "'%.*s'", (int)v->n, v->bytes);
        break;
    case ETD_IS_BIN:
        add(text, "<");
        for (size_t i = 0; i < v->n; i++)
            add(text, "%02x", (unsigned char)v->bytes[i]);
        add(text, ">");
        break;
    case ETD_IS_LIST:
        add(text, "[");
        for (size_t i = 0; i < v->n; i++) {
            etd_next(&at, end, &inside);
            add(text, i ? " " : "");
            say_value(text, &inside, end);
        }
        add(text, "]");
        break;
    case ETD_IS_MAP:
        at = v->map.at;
        add(text, "{");
        for (int i = 0; i < 2 * v->map.n; i++) {
            etd_next(&at, end, &inside);
            add(text, i ? i % 2 ? ": " : ", " : "");
            say_value(text, &inside, end);
        }
        add(text, "}");
    }
}

static void
say(char *text, const char *bytes, size_t n)
{
    struct etd_frame f;
    struct etd_fault fault;
    text[0] = '\0';
    if (etd_read(bytes, n, &f, &fault) != ET_OK) {
        add(text, "refused: %s", fault.why);
        return;
    }
    const struct etd_head *h = &f.head;
    struct etd_value body = {.type = ETD_IS_MAP, .map = f.body};
    add(text, "%d.%d %s run ", h->major, h->minor, etd_kind_name(h->kind));
    for (int i = 0; i < ETD_RUN_ID; i++)
        add(text, "%02x", h->run[i]);
    add(text,
        " inc %" PRId64 " hseq %" PRId64 " rank %d rseq %" PRId64 " t %" PRId64 " ",
        h->incarnation, h->hseq, h->rank, h->rseq, h->t_mono_ns);
    say_value(text, &body, f.body.end);
}

static size_t
from_hex(const char *text, char *bytes)
{
    size_t n = 0;
    for (unsigned x; n < MESSAGE && sscanf(text + 2 * n, "%2x", &x) == 1; n++)
        bytes[n] = (char)x;
    return n;
}

static void
test_version(const char *name, bool is_ours)
{
    static char line[2 * LINE], said[LINE], bytes[MESSAGE], mine[MESSAGE];
    const char *srcdir = getenv("ET_SRCDIR");
    char path[4096];
    int i = 0;
    snprintf(path, sizeof path, "%s/t/dist/transcripts/%s", srcdir ? srcdir : ".",
             name);
    FILE *f = fopen(path, "r");
    if (!f)
        bail("cannot read %s", path);
    for (; fgets(line, sizeof line, f); i++) {
        char *hex = strchr(line, '\t');
        if (!hex)
            bail("%s:%d: no tab", path, i + 1);
        *hex++ = '\0';
        size_t n = from_hex(hex, bytes);
        say(said, bytes, n);
        is_str(said, line, "%s, message %d says what it did", name, i + 1);
        size_t written = is_ours ? message(i, mine) : 0;
        if (is_ours)
            ok(written == n && memcmp(mine, bytes, n) == 0,
               "and is written with the same bytes");
    }
    fclose(f);
    ok(i > 0 && (!is_ours || message(i, mine) == 0), "that was all of %s", name);
}

int
main(int argc, char **argv)
{
    static char said[LINE], bytes[MESSAGE];
    if (argc > 1 && strcmp(argv[1], "write") == 0) {
        size_t n;
        for (int i = 0; (n = message(i, bytes)) > 0; i++) {
            say(said, bytes, n);
            printf("%s\t", said);
            for (size_t k = 0; k < n; k++)
                printf("%02x", (unsigned char)bytes[k]);
            printf("\n");
        }
        return 0;
    }
    test_version("1.0", false);
    test_version("1.1", true);
    return done();
}
