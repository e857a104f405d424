/* SPDX-License-Identifier: Apache-2.0 */
/* What a viewer keeps of RELIABILITY.md section 5: the table at the end has a row for
 * each limit. Numbers are those of the document, not those of the sources; the clock is
 * the test's (talk.h). */
#include "config.h"

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#include "dist/hub/client_parts.h"
#include "t/dist/talk.h"
#include "t/tap.h"

static struct house h;
static struct talk watch;
static char space[ETD_CHUNK_BYTES];

static struct etd_client *
join(void)
{
    struct etd_client *c = house_client(&h, false);
    if (!house_drive(&h, &c, 1, all_equal))
        bail("a viewer is not served");
    return c;
}

static void
step(struct etd_client *c)
{
    if (etd_client_step(c) != ET_OK)
        bail("%s", et_error_get(h.cx)->message);
}

static double
now(void)
{
    return atomic_load(&desk->now);
}

/* A quarter of a second, which is a number without a rest. */
static void
pass(struct etd_client *c)
{
    atomic_store(&desk->now, now() + 0.25);
    step(c);
}

static const struct etd_client_status *
look(const struct etd_client *c)
{
    return etd_client_status(c);
}

static bool
is_down(struct house *house, struct etd_client **c, int n)
{
    (void)house, (void)n;
    return look(c[0])->link == ETD_LINK_DISCONNECTED;
}

/* ---- 5.8 time ---- */

static void
test_beat(void)
{
    struct etd_client *c = join();
    double said = c->said;
    for (int i = 0; i < 3; i++)
        pass(c);
    ok(c->said == said,
       "a viewer that has nothing to say says nothing for less than 1 s");
    pass(c);
    ok(c->said == said + 1, "after 1 s it sends a PING");
    etd_client_close(&c);
}

static void
test_stale(void)
{
    struct etd_client *c = join();
    unsigned char id[ETD_CMD_ID];
    int status = 0, wrong = 0;
    double stale = 0, silent = 0;
    kill(h.hub, SIGSTOP);
    if (waitpid(h.hub, &status, WUNTRACED) != h.hub || !WIFSTOPPED(status))
        bail("the hub does not stand still");
    for (int i = 0; i < 80 && look(c)->link != ETD_LINK_DISCONNECTED; i++) {
        pass(c);
        silent = now() - c->heard;
        wrong += look(c)->link != (silent < 3    ? ETD_LINK_LIVE
                                   : silent < 10 ? ETD_LINK_STALE
                                                 : ETD_LINK_DISCONNECTED);
        if (look(c)->link == ETD_LINK_STALE && stale == 0) {
            stale = silent;
            ok(etd_client_command(c, ETD_OP_STOP, NULL, NULL, -1, 1000, id) ==
                   ET_ECANCELED,
               "a viewer of a hub that is silent sends no command, and keeps none");
            et_error_clear(h.cx);
        }
    }
    is_int(wrong, 0, "such a viewer is live, stale, and then disconnected");
    ok(stale == 3, "after 3 s (%g) without a word it is stale", stale);
    ok(silent == 10, "after 10 s (%g) it has left", silent);
    is_str(look(c)->code, "SILENT", "for that reason");
    kill(h.hub, SIGCONT);
    etd_client_close(&c);
    talk_restart(&h, &watch);
}

/* One that does not come back by itself, and none that does, tells a time below 0 until
 * it calls again. */
static void
test_no_retry(void)
{
    const struct etd_client_options o = {.channel = {.target = "/nonexistent/socket"},
                                         .once = true};
    struct etd_client *c;
    if (etd_client_open(h.cx, &o, &c) != ET_OK)
        bail("%s", et_error_get(h.cx)->message);
    step(c);
    ok(look(c)->link == ETD_LINK_DISCONNECTED && look(c)->retry_in > 0,
       "a viewer that finds no hub tells when it would call again");
    for (int i = 0; i < 8; i++)
        pass(c);
    is_near(look(c)->retry_in, 0, 0, "never less than no time");
    is_int(c->attempts, 1, "where it is to call once it does not call again");
    etd_client_retry(c);
    step(c);
    is_int(look(c)->link, ETD_LINK_DISCONNECTED, "unless it is told to");
    etd_client_close(&c);
}

/* Seconds until C tries again, as a part of WANTED. */
static double
share(const struct etd_client *c, double wanted)
{
    return (c->retry_at - now()) / wanted;
}

static void
test_retries(void)
{
    static const double waits[] = {1, 2, 4, 8, 16, 30, 30, 30};
    enum { N = sizeof waits / sizeof *waits };
    double part[N];
    int within = 0, early = 0;
    struct etd_client *c = join();
    house_kill(&h);
    unlink(h.socket);
    if (!house_drive(&h, &c, 1, is_down))
        bail("the viewer does not see that its hub is gone");
    for (int i = 0; i < N; i++) {
        part[i] = share(c, waits[i]);
        within += part[i] >= 0.8 && part[i] <= 1.2;
        int attempts = c->attempts;
        atomic_store(&desk->now, c->retry_at - 0.001);
        step(c);
        early += c->attempts != attempts;
        atomic_store(&desk->now, c->retry_at);
        step(c);
    }
    is_int(
        within, N,
        "a viewer tries again after 1, 2, 4, 8, 16, 30 and 30 s, a fifth more or less");
    is_int(early, 0, "and not before");
    ok(part[5] != part[6] && part[6] != part[7], "how much is drawn each time");
    talk_restart(&h, &watch);
    etd_client_retry(c);
    ok(house_drive(&h, &c, 1, all_equal), "its hub is there again");
    house_kill(&h);
    unlink(h.socket);
    ok(house_drive(&h, &c, 1, is_down) && share(c, 1) <= 1.2,
       "when it goes once more the viewer begins with 1 s");
    etd_client_close(&c);
    talk_restart(&h, &watch);
}

static void
test_handshake(void)
{
    struct sockaddr_un a = {.sun_family = AF_UNIX};
    const struct etd_client_options o = {.channel = {.target = a.sun_path}};
    struct etd_client *c;
    snprintf(a.sun_path, sizeof a.sun_path, "%s/mute.sock", h.folder);
    int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    if (bind(fd, (struct sockaddr *)&a, sizeof a) != 0 || listen(fd, 1) != 0 ||
        etd_client_open(h.cx, &o, &c) != ET_OK)
        bail("nobody listens");
    double began = now();
    while (look(c)->link == ETD_LINK_CONNECTING && now() < began + 20)
        pass(c);
    ok(now() == began + 5, "a viewer waits for its WELCOME for 5 s (%g)",
       now() - began);
    is_str(look(c)->code, "SILENT", "and then goes");
    etd_client_close(&c);
    close(fd);
}

/* ---- what a hub may say ---- */

static struct etd_out
say(enum etd_kind kind, int64_t hseq, int n_keys)
{
    struct etd_out o;
    const struct etd_head head = {.kind = kind, .incarnation = 1, .hseq = hseq};
    etd_begin(&o, space, sizeof space, &head, n_keys);
    return o;
}

/* As if it came from the hub. */
static void
hear(struct etd_client *c, struct etd_out *o)
{
    size_t n = etd_end(o);
    if (n == 0 || etd_client_message(c, o->bytes, n) != ET_OK)
        bail("a message cannot be heard");
}

static void
hear_begin(struct etd_client *c, int64_t bytes, int64_t facts, int64_t s,
           const unsigned char *digest)
{
    struct etd_out o = say(ETD_SNAP_BEGIN, 0, 4);
    etd_put_int(&o, "s", s);
    etd_put_int(&o, "bytes", bytes);
    etd_put_int(&o, "facts", facts);
    etd_put_bin(&o, "digest", digest, ETD_DIGEST);
    hear(c, &o);
}

static void
hear_chunk(struct etd_client *c, size_t at, const char *bytes, size_t n)
{
    struct etd_out o = say(ETD_SNAP_CHUNK, 0, 2);
    etd_put_int(&o, "at", (int64_t)at);
    etd_put_bin(&o, "data", bytes, n);
    hear(c, &o);
}

static void
hear_end(struct etd_client *c)
{
    struct etd_out o = say(ETD_SNAP_END, 0, 0);
    hear(c, &o);
}

/* What is said of a snapshot, and what of that is wrong. */
struct said {
    const char *what, *code; /* "" it is taken; */
    const char *why;         /* begins the reason that is given */
    bool digest, seq;        /* another than the model's */
    int64_t bytes;           /* other than its size, by */
    int64_t at;              /* and its second part is elsewhere, by */
};

static void
hear_snapshot(struct etd_client *c, const struct said *w)
{
    enum { PART = 60 << 10 };
    unsigned char digest[ETD_DIGEST];
    char *bytes;
    size_t n;
    if (etd_model_save(etd_client_model(c), &bytes, &n) != ET_OK ||
        etd_model_digest(etd_client_model(c), digest) != ET_OK)
        bail("no snapshot");
    digest[ETD_DIGEST - 1] ^= w->digest;
    int64_t seq = etd_client_model(c)->seq + w->seq;
    hear_begin(c, (int64_t)n + w->bytes, 0, seq, digest);
    for (size_t at = 0; at < n && look(c)->link == ETD_LINK_LOADING; at += PART)
        hear_chunk(c, at + (size_t)(at > 0 ? w->at : 0), bytes + at,
                   n - at < PART ? n - at : PART);
    if (look(c)->link == ETD_LINK_LOADING)
        hear_end(c);
    et_free(h.cx, bytes);
}

static void
test_snapshot(void)
{
    static const struct said row[] = {
        {"as it is", "", "", false, false, 0, 0},
        {"with another digest", "DIGEST", "the snapshot is not", true, false, 0, 0},
        {"of another record", "DIGEST", "the snapshot is not", false, true, 0, 0},
        {"longer than was announced", "MALFORMED", "a part", false, false, -1, 0},
        {"that ends too early", "MALFORMED", "the snapshot ended", false, false, 1, 0},
        {"with a part left out", "MALFORMED", "a part", false, false, 0, 1},
        {"with a part twice", "MALFORMED", "a part", false, false, 0, -1},
    };
    for (size_t i = 0; i < sizeof row / sizeof *row; i++) {
        struct etd_client *c = join();
        int64_t before = look(c)->snapshots;
        hear_snapshot(c, &row[i]);
        is_str(look(c)->code, row[i].code, "a snapshot %s is %s", row[i].what,
               row[i].code[0] ? "refused" : "taken");
        is_int(look(c)->link, row[i].code[0] ? ETD_LINK_DISCONNECTED : ETD_LINK_LIVE,
               "and the viewer %s", row[i].code[0] ? "goes" : "stays");
        ok(strncmp(look(c)->text, row[i].why, strlen(row[i].why)) == 0, "(%s)",
           row[i].why);
        is_int(look(c)->snapshots - before, !row[i].code[0], "(as is counted)");
        is_int(c->has_model, strcmp(row[i].code, "DIGEST") != 0,
               "(a model that is not the hub's is not gone on with)");
        etd_client_close(&c);
    }
}

static void
test_snapshot_size(void)
{
    static const unsigned char digest[ETD_DIGEST];
    static const struct {
        int64_t bytes, facts;
        bool taken;
    } row[] = {
        {16 << 20, 16 << 20, true},
        {(16 << 20) + 1, 0, false},
        {1, (16 << 20) + 1, false},
        {0, 0, false},
        {1, -1, false},
    };
    for (size_t i = 0; i < sizeof row / sizeof *row; i++) {
        struct etd_client *c = join();
        hear_begin(c, row[i].bytes, row[i].facts, 1, digest);
        is_int(look(c)->link, row[i].taken ? ETD_LINK_LOADING : ETD_LINK_DISCONNECTED,
               "%lld bytes of a snapshot and %lld of facts are %s",
               (long long)row[i].bytes, (long long)row[i].facts,
               row[i].taken ? "waited for" : "refused");
        etd_client_close(&c);
    }
}

static void
hear_pong(struct etd_client *c, int64_t at, unsigned char change)
{
    unsigned char digest[ETD_DIGEST];
    struct etd_out o = say(ETD_PONG, 0, 2);
    if (etd_model_digest(etd_client_model(c), digest) != ET_OK)
        bail("no digest");
    digest[0] ^= change;
    etd_put_int(&o, "at", at);
    etd_put_bin(&o, "digest", digest, sizeof digest);
    hear(c, &o);
}

static void
test_digest(void)
{
    struct etd_client *c = join();
    int64_t seq = etd_client_model(c)->seq, verified = look(c)->verified;
    hear_pong(c, seq, 0);
    is_int(look(c)->verified - verified, 1,
           "a hub's digest is compared with the viewer's");
    hear_pong(c, seq - 1, 1);
    is_int(look(c)->link, ETD_LINK_LIVE, "that of another record is not");
    hear_pong(c, seq, 1);
    is_str(look(c)->code, "DIGEST", "where they differ the viewer goes");
    etd_client_retry(c);
    ok(house_drive(&h, &c, 1, all_equal), "it comes back");
    is_int(look(c)->snapshots, 2, "for another snapshot");
    etd_client_close(&c);
}

/* ---- 5.4 gaps ---- */

static void
hear_record(struct etd_client *c, int64_t seq)
{
    struct etd_out o = say((enum etd_kind)ET_RECORD_LOG, seq, 1);
    etd_put_text(&o, "text", "x");
    hear(c, &o);
}

static void
test_jump(void)
{
    struct etd_client *c = join();
    int64_t seq = etd_client_model(c)->seq;
    hear_record(c, seq);
    ok(etd_client_model(c)->seq == seq && c->nack_at == 0,
       "a record that a viewer has is not taken again");
    hear_record(c, seq + 2);
    is_int(etd_client_model(c)->seq, seq, "one behind a gap is not taken");
    ok(look(c)->gaps == 1 && c->nack_at > 0, "the gap is asked for");
    double asked = c->nack_at;
    hear_record(c, seq + 3);
    ok(look(c)->gaps == 1 && c->nack_at == asked, "once");
    hear_record(c, seq + 1);
    ok(etd_client_model(c)->seq == seq + 1 && c->nack_at == 0,
       "what fills it is taken");
    const struct etd_head head = {
        .kind = (enum etd_kind)ET_RECORD_RESUME, .incarnation = 7, .hseq = seq + 2};
    struct etd_out o;
    etd_begin(&o, space, sizeof space, &head, 0);
    hear(c, &o);
    is_int(c->incarnation, 7, "and tells that the run was started again");
    etd_client_close(&c);
}

/* Part PART of a record; MORE: another follows. */
static void
hear_part(struct etd_client *c, int64_t seq, int64_t part, bool more)
{
    struct etd_out o = say((enum etd_kind)ET_RECORD_LOG, seq, 3);
    etd_put_text(&o, "text", "x");
    etd_put_int(&o, "part", part);
    etd_put_bool(&o, "more", more);
    hear(c, &o);
}

static void
test_parts(void)
{
    struct etd_client *c = join();
    int64_t next = etd_client_model(c)->seq + 1;
    hear_part(c, next, 1, false);
    ok(etd_client_model(c)->seq == next - 1 && c->nack_at > 0,
       "a part of a record without the one before it is asked for again");
    double asked = c->nack_at;
    hear_part(c, next, 2, false);
    ok(c->nack_at == asked, "once in a second");
    atomic_store(&desk->now, now() + 1);
    hear_part(c, next, 2, false);
    ok(c->nack_at == asked + 1, "and then once more");
    hear_part(c, next, 0, true);
    ok(etd_client_model(c)->seq == next - 1 && c->nack_at == 0,
       "its first part is waited with for the others");
    hear_part(c, next, 1, false);
    ok(etd_client_model(c)->seq == next && look(c)->gaps == 0,
       "with the last the record is there, and that was no gap");
    etd_client_close(&c);
}

static void
test_asked_again(void)
{
    struct etd_client *c = join();
    int64_t seq = etd_client_model(c)->seq;
    hear_record(c, seq + 2);
    double asked = c->nack_at;
    atomic_store(&desk->now, now() + 0.75);
    hear_record(c, seq + 3);
    ok(c->nack_at == asked, "a gap is not asked for again in less than a second");
    atomic_store(&desk->now, now() + 0.25);
    hear_record(c, seq + 4);
    ok(c->nack_at == asked + 1, "and after a second it is");
    ok(look(c)->gaps == 1 && look(c)->missed == 1, "which is one gap, of one record");
    etd_client_close(&c);
}

/* ---- 5.7 credit ---- */

static void
test_gives_credit(void)
{
    enum { CREDIT = 256 };
    struct etd_client *c = join();
    int64_t seq = etd_client_model(c)->seq;
    etd_client_ping(c);
    if (c->owed != 0)
        bail("no PING is taken");
    for (int i = 1; i < CREDIT / 2; i++)
        hear_record(c, seq + i);
    is_int(c->owed, CREDIT / 2 - 1, "a viewer owes credit for 127 messages");
    struct etd_out o = say(ETD_PONG, 0, 0);
    hear(c, &o);
    is_int(c->owed, CREDIT / 2 - 1, "what is no part of the stream costs none");
    hear_record(c, seq + CREDIT / 2);
    is_int(c->owed, 0, "and gives it with the 128th, half of what it granted");
    etd_client_close(&c);
}

/* ---- 5.5 the first and the last word ---- */

/* REFUSE or BYE, with CODE. */
static void
hear_end_of(struct etd_client *c, enum etd_kind kind, const char *code)
{
    struct etd_out o = say(kind, 0, 2);
    etd_put_text(&o, "code", code);
    etd_put_text(&o, "text", "because\033[2J");
    hear(c, &o);
}

static void
test_last_word(void)
{
    static const struct {
        enum etd_kind kind;
        const char *code;
        enum etd_link link;
    } row[] = {
        {ETD_REFUSE, "FULL", ETD_LINK_DISCONNECTED},
        {ETD_REFUSE, "NO_RUN", ETD_LINK_REFUSED},
        {ETD_REFUSE, "VERSION", ETD_LINK_REFUSED},
        {ETD_REFUSE, "UNREADABLE", ETD_LINK_REFUSED},
        {ETD_BYE, "END", ETD_LINK_ENDED},
        {ETD_BYE, "KEY", ETD_LINK_REFUSED},
        {ETD_BYE, "VERSION", ETD_LINK_REFUSED},
        {ETD_BYE, "GONE", ETD_LINK_DISCONNECTED},
        {ETD_BYE, "LAGGED", ETD_LINK_DISCONNECTED},
        {ETD_BYE, "SILENT", ETD_LINK_DISCONNECTED},
        {ETD_BYE, "RATE", ETD_LINK_DISCONNECTED},
        {ETD_BYE, "UNKNOWN", ETD_LINK_DISCONNECTED},
        {ETD_BYE, "MALFORMED", ETD_LINK_DISCONNECTED},
    };
    for (size_t i = 0; i < sizeof row / sizeof *row; i++) {
        struct etd_client *c = join();
        bool comes_back = row[i].link == ETD_LINK_DISCONNECTED;
        hear_end_of(c, row[i].kind, row[i].code);
        is_int(look(c)->link, row[i].link, "a viewer that hears %s %s %s",
               etd_kind_name(row[i].kind), row[i].code,
               comes_back ? "tries again" : "has come to its end");
        is_str(look(c)->code, row[i].code, "for that reason,");
        is_str(look(c)->text, "because\\x1b[2J",
               "which cannot move a terminal's cursor");
        ok(etd_client_fd(c) == -1 && (etd_client_timeout(c) == -1) == !comes_back,
           "(it waits %s)", comes_back ? "some time" : "for nothing");
        etd_client_retry(c);
        ok(house_drive(&h, &c, 1, all_equal), "it comes back where it is told to");
        etd_client_close(&c);
    }
}

/* To a viewer that has not been answered yet. */
static void
hear_welcome(struct etd_client *c, int set, const char *lease)
{
    struct etd_out o = say(ETD_WELCOME, 0, 5 + 2 * !!lease);
    etd_put_text(&o, "name", "a-run\033[2J");
    etd_put_text(&o, "role", set == 0 ? "operator" : "viewer");
    etd_put_bool(&o, "ended", set == 1);
    etd_put_bool(&o, "files", set == 2);
    etd_put_int(&o, "head", 10);
    if (lease) {
        etd_put_text(&o, "lease", lease);
        etd_put_bool(&o, "mine", set == 3);
    }
    hear(c, &o);
}

/* Of four things that WELCOME may say one is so. */
static void
test_first_word(void)
{
    const struct etd_client_options o = {.channel = {.target = h.socket}};
    for (int set = 0; set < 4; set++) {
        struct etd_client *c;
        if (etd_client_open(h.cx, &o, &c) != ET_OK)
            bail("%s", et_error_get(h.cx)->message);
        struct etd_out early = say(ETD_PONG, 0, 2);
        etd_put_text(&early, "lease", "nobody");
        etd_put_bool(&early, "mine", true);
        hear(c, &early);
        ok(!look(c)->lease[0] && look(c)->link == ETD_LINK_CONNECTING,
           "before its WELCOME a viewer takes nothing in");
        hear_welcome(c, set, set == 3 ? "uid:7" : NULL);
        is_str(look(c)->name, "a-run\\x1b[2J", "WELCOME names the run");
        is_int(look(c)->is_operator, set == 0, "and says whether it may be steered,");
        is_int(look(c)->has_ended, set == 1, "whether it has ended,");
        is_int(look(c)->has_files, set == 2, "whether its files can be read,");
        is_int(look(c)->is_holder, set == 3, "whether it is this viewer's,");
        is_str(look(c)->lease, set == 3 ? "uid:7" : "", "and whose it is");
        is_int(look(c)->link, ETD_LINK_LOADING, "(a snapshot is waited for)");
        struct etd_out later = say(ETD_PONG, 0, 1);
        etd_put_text(&later, "lease", "uid:8");
        hear(c, &later);
        is_str(look(c)->lease, "uid:8", "later it hears who has taken it since");
        ok(!look(c)->is_holder, "which is another");
        hear_welcome(c, 0, "uid:9");
        is_str(look(c)->lease, "uid:8", "it is welcomed once");
        etd_client_close(&c);
    }
}

/* ---- answers ---- */

static void
test_most_answers(void)
{
    enum { MORE = 3 };
    struct etd_client *c = join();
    struct etd_answer a = {.kind = ETD_REJECTED, .code = 5008};
    int wrong = 0;
    for (int i = 0; i < ETD_ANSWERS + MORE; i++) {
        const struct etd_head head = {.kind = a.kind, .incarnation = 1};
        snprintf(a.text, sizeof a.text, "%d\033", i);
        size_t n = etd_answer_write(space, sizeof space, &head, &a);
        if (n == 0 || etd_client_message(c, space, n) != ET_OK)
            bail("no answer can be heard");
    }
    for (int i = 0; i < ETD_ANSWERS; i++) {
        char text[16];
        snprintf(text, sizeof text, "%d\\x1b", i + MORE);
        wrong +=
            !etd_client_answer(c, &a) || strcmp(a.text, text) != 0 || a.code != 5008;
    }
    is_int(wrong, 0,
           "of 67 answers that nobody fetches the last 64 are kept, in order");
    ok(!etd_client_answer(c, &a), "and no others");
    etd_client_close(&c);
}

/* An answer about history whose lists have other lengths. */
static void
test_points(void)
{
    static const int64_t ba[] = {11, 12, 13, 14};
    static const double t[] = {21, 22, 23, 24}, v[] = {31, 32, 33, 34};
    for (int shorter = 0; shorter < 4; shorter++) {
        struct etd_client *c = join();
        struct etd_points p;
        struct etd_out o = say(ETD_HIST, 0, 4);
        etd_put_int(&o, "id", 5);
        etd_put_ints(&o, "ba", ba, 4 - (shorter == 1));
        etd_put_doubles(&o, "t", t, 4 - (shorter == 2));
        etd_put_doubles(&o, "v", v, 4 - (shorter == 3));
        hear(c, &o);
        int n = 4 - (shorter > 0), wrong = 0;
        ok(etd_client_points(c, &p) && p.id == 5 && p.n == n,
           "points whose batch, time or value is not said are none (%d)", shorter);
        for (int i = 0; i < p.n; i++)
            wrong += p.point[i].ba != ba[i] || p.point[i].t != t[i] ||
                     p.point[i].value != v[i];
        is_int(wrong, 0, "the others are what was said");
        ok(!etd_client_points(c, &p), "an answer is told once");
        etd_client_close(&c);
    }
}

/* ---- pieces of files ---- */

/* A FILE whose keys are as said; without data where that is NULL. */
static void
hear_file(struct etd_client *c, const char *file, int64_t rank, int64_t at,
          int64_t size, const char *data, bool missing)
{
    struct etd_out o = say(ETD_FILE, 0, 5 + (data != NULL));
    etd_put_text(&o, "file", file);
    etd_put_int(&o, "rank", rank);
    etd_put_int(&o, "at", at);
    etd_put_int(&o, "size", size);
    etd_put_bool(&o, "missing", missing);
    if (data)
        etd_put_bin(&o, "data", data, strlen(data));
    hear(c, &o);
}

static void
test_files(void)
{
    static const struct {
        const char *what, *file;
        int64_t rank, at, size;
        const char *data;
    } wrong[] = {
        {"of no file", "none", 0, 0, 1, "x"},
        {"of rank -1", "log", -1, 0, 1, "x"},
        {"of rank 2^31 - 1", "log", INT32_MAX, 0, 1, "x"},
        {"from byte -1", "log", 0, -1, 1, "x"},
        {"from byte 2^63 - 2^32 + 1", "log", 0, INT64_MAX - UINT32_MAX + 1, 1, "x"},
        {"of a file of -1 bytes", "log", 0, 0, -1, "x"},
        {"without data", "log", 0, 0, 1, NULL},
    };
    struct etd_client *c = join();
    struct etd_piece p;
    ok(etd_client_file(c, ETD_PIECE_LOG, 0, 0) == ET_ECANCELED &&
           strstr(et_error_get(h.cx)->message, "an earlier version") != NULL,
       "who has not said that it sends files is not asked for them");
    et_error_clear(h.cx);
    c->s.has_files = true;
    is_int(etd_client_file(c, ETD_PIECE_LOG, 3, 7), ET_OK, "who has said so is");
    ok(!etd_client_piece(c, &p), "before an answer there is no piece");
    hear_file(c, "log", 3, 7, 99, "abc", false);
    ok(etd_client_piece(c, &p), "an answer is a piece:");
    ok(p.file == ETD_PIECE_LOG && p.rank == 3, "of that file of that rank,");
    ok(p.at == 7 && p.size == 99 && !p.is_missing, "from that byte on, of so many");
    ok(p.n == 3 && memcmp(p.bytes, "abc", 3) == 0, "with its bytes");
    ok(!etd_client_piece(c, &p), "it is told once");
    hear_file(c, "resolved", 0, 0, 0, "", true);
    ok(etd_client_piece(c, &p) && p.is_missing && p.n == 0 &&
           p.file == ETD_PIECE_RESOLVED,
       "a file that is missing is told as such");
    hear_file(c, "log", INT32_MAX - 1, INT64_MAX - UINT32_MAX, 1, "x", false);
    ok(etd_client_piece(c, &p) && p.rank == INT32_MAX - 1,
       "the largest rank and the last byte are taken");
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
        hear_file(c, wrong[i].file, wrong[i].rank, wrong[i].at, wrong[i].size,
                  wrong[i].data, false);
        ok(!etd_client_piece(c, &p), "a piece %s is not taken", wrong[i].what);
    }
    hear_file(c, "log", 0, 0, 3, "old", false);
    is_int(etd_client_file(c, ETD_PIECE_LOG, 0, 3), ET_OK, "another is asked for");
    ok(!etd_client_piece(c, &p), "and nobody takes the last one for its answer");
    etd_client_disconnect(c, "SILENT", "");
    ok(etd_client_file(c, ETD_PIECE_LOG, 0, 0) == ET_ECANCELED &&
           strstr(et_error_get(h.cx)->message, "does not answer") != NULL,
       "without a line nothing is asked for");
    et_error_clear(h.cx);
    etd_client_close(&c);
}

/* ---- 5.10 versions ---- */

static void
test_versions(void)
{
    struct etd_client *c = join();
    int64_t unknown = look(c)->unknown;
    struct etd_out o = say(ETD_PONG, 0, 1);
    etd_put_int(&o, "later", 1);
    memcpy(memmem(o.bytes, o.used, "PONG", 4), "LATE", 4);
    hear(c, &o);
    ok(look(c)->link == ETD_LINK_LIVE && look(c)->unknown == unknown + 1,
       "a kind of a later minor version is skipped and counted");
    o = say(ETD_PONG, 0, 0);
    o.bytes[1] = ETD_MAJOR + 1;
    hear(c, &o);
    is_int(look(c)->link, ETD_LINK_REFUSED, "one of another major version is the end");
    is_str(look(c)->code, "VERSION", "for that reason");
    etd_client_close(&c);
}

/* ---- what is left, and when it looks again ---- */

/* A connection ends in the middle of a record, a gap and a snapshot: nothing of them is
 * left, and the next one goes on behind the last record that is whole. */
static void
test_middle(void)
{
    static const unsigned char digest[ETD_DIGEST];
    struct etd_client *c = join();
    const int64_t seq = etd_client_model(c)->seq;
    hear_part(c, seq + 1, 0, true);
    hear_record(c, seq + 3);
    hear_end_of(c, ETD_BYE, "LAGGED");
    ok(c->join.parts == 0 && c->owed == 0,
       "half a record is forgotten, and what was owed to that hub");
    atomic_store(&desk->now, now() + 20);
    house_tell(&h, 3);
    struct etd_client *other = join(); /* the hub has read them */
    etd_client_close(&other);
    etd_client_retry(c);
    step(c);
    ok(c->heard == now() && c->said == now() && c->began == now() && c->nack_at == 0,
       "time counts anew, and no gap is asked for");
    const int64_t snapshots = look(c)->snapshots, gaps = look(c)->gaps;
    ok(house_drive(&h, &c, 1, all_equal), "it comes back");
    ok(look(c)->snapshots == snapshots && look(c)->gaps == gaps,
       "and goes on without another snapshot, and without a gap");
    ok(!look(c)->code[0] && !look(c)->text[0], "why it went is no longer said");
    is_int(look(c)->missed, 3, "but how many records it missed");
    hear_begin(c, 1000, 10, 1, digest);
    hear_chunk(c, 0, space, 500);
    ok(look(c)->loading == 1010 && look(c)->loaded == 500 && c->owed > 0,
       "a snapshot says how much of it is there");
    c->heard = now() - 4;
    step(c);
    is_int(look(c)->link, ETD_LINK_LOADING, "a viewer that loads is not stale");
    unsigned char id[ETD_CMD_ID];
    ok(etd_client_command(c, ETD_OP_STOP, NULL, NULL, -1, 1000, id) == ET_OK,
       "and may give commands");
    hear_end_of(c, ETD_BYE, "LAGGED");
    ok(look(c)->loading == 0 && look(c)->loaded == 0 && !c->snap.bytes && c->owed == 0,
       "and nothing does when it has broken off");
    etd_client_retry(c);
    ok(house_drive(&h, &c, 1, all_equal), "it comes back once more");
    const int64_t missed = look(c)->missed;
    hear_record(c, etd_client_model(c)->seq + 3);
    is_int(look(c)->missed - missed, 2, "it missed what is in a gap");
    hear_pong(c, etd_client_model(c)->seq, 1);
    etd_client_retry(c);
    ok(house_drive(&h, &c, 1, all_equal) && look(c)->missed == 0,
       "and nothing, when it has a snapshot of all");
    etd_client_close(&c);
}

static void
test_times(void)
{
    struct etd_client *c = join();
    c->touched = false;
    c->said = c->heard = now();
    is_int(etd_client_timeout(c), 1001, "it looks again when a PING is due");
    c->heard = now() - 2.5;
    is_int(etd_client_timeout(c), 501, "or when it is stale");
    c->said = now() - 0.75;
    is_int(etd_client_timeout(c), 251, "whichever is first");
    c->touched = true;
    is_int(etd_client_timeout(c), 0, "or at once, where there may be more");
    c->heard = now();
    c->verify_at = now();
    step(c);
    ok(c->verify_at == now() + ETD_VERIFY && !c->wants_digest,
       "a digest is asked for, once, and again some time later");
    etd_client_verify(c);
    ok(!c->wants_digest, "also where it is told to");
    (void)house_drive(&h, &c, 1, all_live);
    atomic_store(&desk->now, now() + 100);
    step(c);
    is_int(look(c)->link, ETD_LINK_LIVE,
           "a viewer that was suspended does not take that for the hub's silence");
    ok(look(c)->silent <= 1, "and says so (%g)", look(c)->silent);
    hear_end_of(c, ETD_BYE, "LAGGED");
    c->retry_at = now() + 4;
    c->touched = false;
    is_int(etd_client_timeout(c), 4001,
           "one that has no hub looks when it tries again");
    c->s.silent = 3;
    step(c);
    ok(look(c)->silent == 3 && look(c)->retry_in == 4, "which it tells");
    etd_client_retry(c);
    is_int(etd_client_timeout(c), 0, "or at once when it is told to");
    etd_client_close(&c);

    const struct etd_client_options o = {.channel = {.target = h.socket}, .credit = 7};
    if (etd_client_open(h.cx, &o, &c) != ET_OK)
        bail("%s", et_error_get(h.cx)->message);
    c->touched = false;
    is_int(c->credit, 7, "credit is what it was told");
    is_int(etd_client_timeout(c), 1001, "one that is not answered looks each second");
    c->began = now() - 4.5;
    is_int(etd_client_timeout(c), 501, "and when 5 s are over");
    c->began = now();
    atomic_store(&desk->now, now() + 100);
    c->stepped = now() - 100;
    step(c);
    ok(look(c)->link != ETD_LINK_DISCONNECTED,
       "also of those it does not count what it was suspended for");
    etd_client_close(&c);
}

/* Other names, and other runs. */
static void
test_whom(void)
{
    struct etd_client_options o = {.channel = {.target = h.socket}, .run = "a/b"};
    struct etd_client *c;
    is_int(etd_client_open(h.cx, &o, &c), ET_EINVAL, "no run has that name");
    et_error_clear(h.cx);
    o.run = NULL;
    memset(o.id, 0, sizeof o.id);
    o.id[ETD_RUN_ID - 1] = 1;
    if (etd_client_open(h.cx, &o, &c) != ET_OK)
        bail("%s", et_error_get(h.cx)->message);
    hear_welcome(c, 0, NULL);
    ok(look(c)->link == ETD_LINK_DISCONNECTED &&
           strcmp(look(c)->code, "OTHER_RUN") == 0,
       "a viewer of one run does not look at another");
    etd_client_close(&c);
}

/* What is refused before it is sent: each text and time at its limit, and beyond. */
static void
test_command_limits(void)
{
    static const struct {
        enum etd_op op;
        int key, value, ttl;
        bool sent;
    } row[] = {
        {ETD_OP_SET, 159, 159, 1, true},       {ETD_OP_SET, 160, 1, 1, false},
        {ETD_OP_SET, 1, 160, 1, false},        {ETD_OP_SET, 1, 1, 0, false},
        {ETD_OP_SET, 1, 1, 60000, true},       {ETD_OP_SET, 1, 1, 60001, false},
        {ETD_OP_ANNOTATE, 0, 1024, 500, true}, {ETD_OP_ANNOTATE, 0, 1025, 500, false},
    };
    struct etd_client *c = join();
    for (size_t i = 0; i < sizeof row / sizeof *row; i++) {
        char key[256], value[1100];
        unsigned char id[ETD_CMD_ID];
        memset(key, 'k', (size_t)row[i].key);
        key[row[i].key] = '\0';
        memset(value, 'v', (size_t)row[i].value);
        value[row[i].value] = '\0';
        const et_status status =
            etd_client_command(c, row[i].op, key, value, -1, row[i].ttl, id);
        is_int(status, row[i].sent ? ET_OK : ET_EINVAL,
               "a command with %d and %d bytes, for %d ms", row[i].key, row[i].value,
               row[i].ttl);
        et_error_clear(h.cx);
    }
    etd_client_close(&c);
}

/* Facts that come later: those that are new, those that changed, and those that the
 * snapshot had. */
static void
test_facts(void)
{
    static const char before[] = "{\"a\":1,\"b\":2}", news[] = "{\"b\":3,\"c\":4}";
    struct etd_client *c = join();
    unsigned char digest[ETD_DIGEST];
    char *bytes;
    size_t n;
    if (etd_model_save(etd_client_model(c), &bytes, &n) != ET_OK ||
        etd_model_digest(etd_client_model(c), digest) != ET_OK)
        bail("no snapshot");
    const int64_t facts = look(c)->facts;
    hear_begin(c, (int64_t)n, (int64_t)strlen(before), etd_client_model(c)->seq,
               digest);
    hear_chunk(c, 0, before, strlen(before));
    enum { PART = 60 << 10 };
    for (size_t at = 0; at < n; at += PART)
        hear_chunk(c, strlen(before) + at, bytes + at, n - at < PART ? n - at : PART);
    hear_end(c);
    et_free(h.cx, bytes);
    const char *got = etd_client_facts(c, &n);
    ok(n == strlen(before) && memcmp(got, before, n) == 0 &&
           look(c)->facts == facts + 1,
       "a snapshot has facts");
    struct etd_out o = say(ETD_FACTS, 0, 1);
    etd_put_bin(&o, "facts", news, strlen(news));
    hear(c, &o);
    got = etd_client_facts(c, &n);
    static const char both[] = "{\"a\":1,\"b\":3,\"c\":4}";
    ok(n == strlen(both) && memcmp(got, both, n) == 0, "later ones are put into them");
    is_int(look(c)->facts - facts, 2, "and told");
    o = say(ETD_FACTS, 0, 1);
    etd_put_bin(&o, "facts", "[1]", 3);
    hear(c, &o);
    got = etd_client_facts(c, &n);
    ok(n == strlen(both) && memcmp(got, both, n) == 0 && look(c)->facts == facts + 2,
       "what is no facts changes nothing");
    /* They may grow by 64 KiB, here in two steps; then by a byte. */
    static char big[ETD_STREAM_BYTES];
    const size_t most = strlen(before) + ETD_STREAM_BYTES;
    for (size_t step = 0, all = strlen(both); step < 3; step++) {
        const size_t keys = strlen(",\"0\":\"\"");
        const size_t fill = step == 0 ? 30000 : most - all - keys + step - 1;
        int at = snprintf(big, sizeof big, "{\"%c\":\"", step == 0 ? '0' : '1');
        memset(big + at, 'x', fill);
        memcpy(big + at + fill, "\"}", 3);
        o = say(ETD_FACTS, 0, 1);
        etd_put_bin(&o, "facts", big, strlen(big));
        hear(c, &o);
        (void)etd_client_facts(c, &n);
        if (step == 0)
            all = n;
        else
            ok(n == most &&
                   look(c)->link == (step == 1 ? ETD_LINK_LIVE : ETD_LINK_DISCONNECTED),
               "facts of 64 KiB more are taken, and not a byte beyond");
    }
    etd_client_close(&c);
}

static const struct talk_limit limits[] = {
    {"5.8", "a PING after 1 s", test_beat},
    {"5.8", "stale after 3 s, disconnected after 10 s", test_stale},
    {"5.8", "retries after 1, 2, 4 ... 30 s", test_retries},
    {"5.8", "or none", test_no_retry},
    {"5.9", "a handshake of 5 s", test_handshake},
    {"5.5", "a snapshot is what was announced", test_snapshot},
    {"5.9", "a snapshot of 16 MiB", test_snapshot_size},
    {"5.5", "the digest at a record", test_digest},
    {"5.4", "jumps are noticed", test_jump},
    {"5.4", "parts of a record go on where the last ended", test_parts},
    {"5.4", "a gap is asked for again after 1 s", test_asked_again},
    {"5.7", "credit is given at half", test_gives_credit},
    {"5.5", "REFUSE and BYE", test_last_word},
    {"5.5", "WELCOME", test_first_word},
    {"5.9", "64 answers that wait", test_most_answers},
    {"5.9", "points of history", test_points},
    {"5.9", "pieces of files", test_files},
    {"5.10", "later versions", test_versions},
    {"5.5", "nothing is left of a connection", test_middle},
    {"5.8", "when a viewer looks again", test_times},
    {"5.5", "the run that was meant", test_whom},
    {"6.2", "what a command may have", test_command_limits},
    {"5.5", "facts that come later", test_facts},
};

int
main(void)
{
    talk_begin(&h, &watch);
    house_tell(&h, 3000); /* of which a snapshot has several parts */
    return talk_run(&h, &watch, 0, limits, sizeof limits / sizeof *limits);
}
