/* SPDX-License-Identifier: Apache-2.0 */
/* The hub and its viewers: all of them know what the log says, whenever they came. */
#include "config.h"

#include <jansson.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "core/base/seams.h"
#include "dist/hub/client_parts.h"
#include "t/dist/talk.h"
#include "t/tap.h"

static struct house h;

static bool
is_verified(struct house *house, struct etd_client **c, int n)
{
    (void)house, (void)n;
    return etd_client_status(c[0])->verified > 0;
}

static void
test_join(void)
{
    struct etd_client *c[3];
    size_t n;
    house_tell(&h, 2000);
    c[0] = house_client(&h, false);
    ok(house_drive(&h, c, 1, all_equal), "a viewer gets a snapshot");
    ok(house_is_equal(&h, c[0]), "which is what the log says");
    is_int(etd_client_status(c[0])->snapshots, 1, "one");
    ok(etd_client_status(c[0])->is_operator, "the owner of a run may give commands");
    is_str(etd_client_status(c[0])->name, h.name, "and is told its name");
    const char *facts = etd_client_facts(c[0], &n);
    ok(facts && memmem(facts, n, "test-otter", 10), "facts come beside the snapshot");

    house_tell(&h, 3000);
    c[1] = house_client(&h, false);
    ok(house_drive(&h, c, 2, all_equal), "a second joins while records are made");
    house_tell(&h, 70);
    c[2] = house_client(&h, false);
    ok(house_drive(&h, c, 3, all_equal), "and a third");
    ok(house_is_equal(&h, c[0]) && house_is_equal(&h, c[1]) && house_is_equal(&h, c[2]),
       "all three know the same");
    is_int(etd_client_status(c[0])->snapshots, 1,
           "the first was streamed every record");
    is_int(etd_client_status(c[0])->gaps, 0, "without a gap");
    etd_client_verify(c[0]);
    ok(house_drive(&h, c, 3, is_verified), "its digest is the hub's");
    is_int(etd_client_status(c[0])->wrong, 0, "and never was another");
    for (int i = 0; i < 3; i++)
        etd_client_close(&c[i]);
}

/* As if it came from the hub. */
static void
hear_facts(struct etd_client *c, const char *json)
{
    static char bytes[ETD_STREAM_BYTES];
    struct etd_out o;
    const struct etd_head head = {.kind = ETD_FACTS};
    etd_begin(&o, bytes, sizeof bytes, &head, 1);
    etd_put_bin(&o, "facts", json, strlen(json));
    size_t n = etd_end(&o);
    if (n == 0 || etd_client_message(c, bytes, n) != ET_OK)
        bail("FACTS cannot be said");
}

static void
test_facts(void)
{
    enum { LONG = 32 << 10 };
    static char json[LONG + 64];
    size_t before, n = 0;
    struct etd_client *c = house_client(&h, false);
    ok(house_drive(&h, &c, 1, all_equal), "a viewer");
    (void)etd_client_facts(c, &before);
    for (int i = 0; i < 100; i++) {
        snprintf(json, sizeof json, "{\"state\":\"%0*d\"}", LONG, i);
        hear_facts(c, json);
    }
    const char *facts = etd_client_facts(c, &n);
    ok(facts && n < before + LONG + 64 && etd_client_status(c)->link == ETD_LINK_LIVE,
       "is told of a state a hundred times, and knows the last");
    for (int i = 0; i < 100 && etd_client_status(c)->link == ETD_LINK_LIVE; i++) {
        snprintf(json, sizeof json, "{\"key-%d\":\"%0*d\"}", i, LONG, i);
        hear_facts(c, json);
    }
    (void)etd_client_facts(c, &n);
    is_int(etd_client_status(c)->link, ETD_LINK_DISCONNECTED,
           "it leaves a hub that adds keys without end");
    ok(n <= before + ETD_STREAM_BYTES, "before they take much memory (%zu bytes)", n);
    etd_client_close(&c);
}

static struct etd_points points;

static bool
has_points(struct house *house, struct etd_client **c, int n)
{
    (void)house, (void)n;
    return etd_client_points(c[0], &points);
}

static void
test_history(void)
{
    struct etd_client *c = house_client(&h, false);
    ok(house_drive(&h, &c, 1, all_equal), "a viewer");
    ok(etd_client_history(c, 7, "loss/train/total", 11, 20, 100) == ET_OK &&
           house_drive(&h, &c, 1, has_points),
       "asks for a part of a series");
    is_int(points.id, 7, "and is told which it is");
    ok(points.n == 10 && points.point[0].ba == 11 && points.point[9].value == 1.0 / 20,
       "value by value");
    ok(etd_client_history(c, 8, "nothing", 0, 100, 100) == ET_OK &&
           house_drive(&h, &c, 1, has_points) && points.n == 0,
       "a series that is not there has none");
    etd_client_close(&c);
}

/* Asks T's hub for points of SERIES, at most MOST of them, from batch FROM to TO; -1:
 * that is not said. */
static void
ask_points(struct talk *t, int id, const char *series, int64_t from, int64_t to,
           int64_t most)
{
    struct etd_out o = talk_say(ETD_HIST, 2 + (from >= 0) + (to >= 0) + (most >= 0));
    etd_put_int(&o, "id", id);
    etd_put_text(&o, "series", series);
    if (from >= 0)
        etd_put_int(&o, "from", from);
    if (to >= 0)
        etd_put_int(&o, "to", to);
    if (most >= 0)
        etd_put_int(&o, "most", most);
    talk_send(t, &o);
}

/* Of 5,170 batches each 100th is an evaluation, and each 31st has no number. */
static void
test_questions(void)
{
    enum { MOST = 4096 };
    static const struct {
        const char *series;
        int64_t from, to, most, n, first, last;
    } row[] = {
        {"loss/train/total", 11, 20, 100, 10, 11, 20},
        {"lr-SGD/group0", 32, 32, 100, 1, 32, 32},
        {"nothing", 0, 100, 100, 0, 0, 0},
        {"metrics/eval/Accuracy", 150, 450, 100, 3, 200, 400},
        {"loss/train/total", 5, 9, -1, 5, 5, 9},
        {"loss/train/total", -1, 3, 100, 3, 1, 3},
        {"metrics/eval/Accuracy", 4900, -1, 100, 3, 4900, 5100},
    };
    enum { ROWS = sizeof row / sizeof *row };
    static int64_t ba[MOST];
    static double t[MOST], v[MOST];
    struct talk viewer = talk_open(&h);
    if (talk_hello(&viewer, -2, -1, NULL) != ETD_WELCOME)
        bail("a viewer is not served");
    for (int i = 0; i < ROWS; i++)
        ask_points(&viewer, 70 + i, row[i].series, row[i].from, row[i].to, row[i].most);
    for (int i = 0; i < ROWS; i++) {
        if (talk_until(&viewer, ETD_HIST) != ETD_HIST)
            bail("a question is not answered: %s", viewer.code);
        const struct etd_map *body = &viewer.f.body;
        int n = etd_get_ints(body, "ba", ba, MOST);
        is_int(etd_get_int(body, "id", -1), 70 + i,
               "of %d questions at once number %d is answered", ROWS, i + 1);
        is_int(n, row[i].n, "with as many points of %s", row[i].series);
        ok(etd_get_doubles(body, "t", t, MOST) == n &&
               etd_get_doubles(body, "v", v, MOST) == n,
           "each with a time and a value");
        ok(n == 0 || (ba[0] == row[i].first && ba[n - 1] == row[i].last),
           "of the batches that were asked for (%lld to %lld)", (long long)ba[0],
           (long long)ba[n > 0 ? n - 1 : 0]);
        bool right = true;
        for (int k = 0; k < n; k++) {
            double own = strncmp(row[i].series, "loss", 4) == 0 ? 1.0 / (double)ba[k]
                         : strncmp(row[i].series, "lr", 2) == 0
                             ? 0.1
                             : (double)(ba[k] % 10) / 10;
            right = right && v[k] == own && t[k] == 1e9 + (double)ba[k];
        }
        ok(right, "and what the log has there");
    }
    talk_close(&viewer);
}

static bool
is_disconnected(struct house *house, struct etd_client **c, int n)
{
    (void)house, (void)n;
    return etd_client_status(c[0])->link == ETD_LINK_DISCONNECTED;
}

static void
test_hub_dies(void)
{
    int code;
    unsigned char id[ETD_CMD_ID];
    struct etd_client *c = house_client(&h, false);
    ok(house_drive(&h, &c, 1, all_equal), "a viewer");
    house_stop_clock();
    house_kill(&h);
    ok(house_drive(&h, &c, 1, is_disconnected), "sees that the hub died");
    double wait = etd_client_status(c)->retry_in;
    ok(wait > 0.79 && wait < 1.21,
       "and tries again in a second, a fifth more or less (%g)", wait);
    ok(etd_client_command(c, ETD_OP_PAUSE, NULL, NULL, -1, 1000, id) == ET_ECANCELED,
       "meanwhile commands are refused, not kept");
    et_error_clear(h.cx);
    house_start_clock();
    house_tell(&h, 312);
    ok(house_start(&h, &code), "another hub starts");
    etd_client_retry(c);
    ok(house_drive(&h, &c, 1, all_equal), "the viewer goes on");
    is_int(etd_client_status(c)->snapshots, 1, "without another snapshot");
    is_int(etd_client_status(c)->missed, 312, "with the records that it missed");
    ok(house_is_equal(&h, c), "and knows what the log says");
    etd_client_close(&c);
}

static bool
is_another_run(struct house *house, struct etd_client **c, int n)
{
    return is_disconnected(house, c, n) &&
           strcmp(etd_client_status(c[0])->code, "OTHER_RUN") == 0;
}

/* A run of the same name may have the place where this one's hub will listen. */
static void
test_other_run(void)
{
    struct etd_client_options o = {
        .channel = {.target = h.socket}, .control = true, .id = {1, 2, 3}};
    struct etd_client *c;
    unsigned char id[ETD_CMD_ID];
    if (etd_client_open(h.cx, &o, &c) != ET_OK)
        bail("%s", et_error_get(h.cx)->message);
    ok(house_drive(&h, &c, 1, is_another_run),
       "who means another run does not talk to this one's hub, for that reason");
    ok(etd_client_command(c, ETD_OP_STOP, NULL, NULL, -1, 1000, id) == ET_ECANCELED,
       "and cannot stop it");
    et_error_clear(h.cx);
    etd_client_close(&c);
    is_int(h.commands, 0, "nothing was asked of it");
}

static bool
is_stopped(struct house *house, struct etd_client **c, int n)
{
    (void)house, (void)n;
    return etd_client_status(c[0])->link == ETD_LINK_ENDED;
}

/* How a run ended is written down just before its hub is told to end. */
static void
write_fact(const char *key, const char *value)
{
    char path[256];
    snprintf(path, sizeof path, "%s/run.json", h.directory);
    json_t *facts = json_load_file(path, 0, NULL);
    if (!facts || json_object_set_new(facts, key, json_string(value)) != 0 ||
        json_dump_file(facts, path, JSON_COMPACT) != 0)
        bail("%s cannot be written", path);
    json_decref(facts);
}

static void
test_end(void)
{
    struct stat st;
    size_t n;
    struct etd_client *c = house_client(&h, false);
    ok(house_drive(&h, &c, 1, all_equal), "a viewer");
    house_tell(&h, 10);
    write_fact("reason", "last-words");
    is_int(house_stop(&h), 0, "the hub ends when the supervisor says so");
    ok(house_drive(&h, &c, 1, is_stopped), "and says so to its viewers");
    is_int(etd_client_model(c)->seq, h.log.seq, "after the last record");
    const char *facts = etd_client_facts(c, &n);
    ok(facts && memmem(facts, n, "last-words", 10),
       "and what was written of the run before it was told to end");
    ok(lstat(h.socket, &st) != 0, "its socket is gone");
    etd_client_close(&c);
}

/* A quarter of a second passes with each step. */
static bool
is_stale(struct house *house, struct etd_client **c, int n)
{
    (void)house, (void)n;
    if (etd_client_status(c[0])->link == ETD_LINK_STALE)
        return true;
    house_pass(0.25);
    return false;
}

static void
test_silence(void)
{
    struct etd_client *c = house_client(&h, false);
    int status = 0;
    house_stop_clock(); /* it is heard at that moment, whatever the machine does */
    ok(house_drive(&h, &c, 1, all_equal), "a viewer");
    kill(h.hub, SIGSTOP);
    ok(waitpid(h.hub, &status, WUNTRACED) == h.hub && WIFSTOPPED(status),
       "(its hub stands still)");
    ok(house_drive(&h, &c, 1, is_stale), "of a hub that is silent is stale");
    double silent = etd_client_status(c)->silent;
    ok(silent >= ETD_STALE && silent < ETD_STALE + 0.5, "after 3 s (%g)", silent);
    house_start_clock();
    kill(h.hub, SIGCONT);
    ok(house_drive(&h, &c, 1, all_live), "and live when it speaks again");
    etd_client_close(&c);
}

/* The machine stands still for a minute, and its hub for a moment longer: whoever was
 * not there to hear it has not been left. */
static void
test_machine_stands(void)
{
    struct etd_client *c[2];
    int status = 0;
    c[0] = house_client(&h, false);
    ok(house_drive(&h, c, 1, all_equal), "a viewer");
    house_stop_clock();
    kill(h.hub, SIGSTOP);
    if (waitpid(h.hub, &status, WUNTRACED) != h.hub || !WIFSTOPPED(status))
        bail("the hub does not stand still");
    c[1] = house_client(&h, false);
    house_pass(60);
    for (int i = 0; i < 2; i++)
        if (etd_client_step(c[i]) != ET_OK)
            bail("%s", et_error_get(h.cx)->message);
    is_int(etd_client_status(c[0])->link, ETD_LINK_LIVE,
           "after a minute in which the machine stood still it waits for its hub");
    is_int(etd_client_status(c[1])->link, ETD_LINK_CONNECTING,
           "as does one that was about to come");
    house_start_clock();
    kill(h.hub, SIGCONT);
    ok(house_drive(&h, c, 2, all_equal), "which speaks again, to both");
    for (int i = 0; i < 2; i++)
        etd_client_close(&c[i]);
}

/* The log goes, and is made again. */
static void
test_removed(void)
{
    char path[256];
    struct etd_client *c = house_client(&h, false);
    ok(house_drive(&h, &c, 1, all_equal), "a viewer");
    snprintf(path, sizeof path, "%s/events.log", h.directory);
    if (unlink(path) != 0 || eti_events_restore(&h.log, h.directory) != ET_OK)
        bail("%s cannot be removed and made again", path);
    house_tell(&h, 100);
    ok(house_drive(&h, &c, 1, all_equal),
       "goes on with a log that was removed and made again");
    is_int(etd_client_status(c)->snapshots, 1, "as if nothing had been");
    etd_client_close(&c);
}

/* ---- HELLO ---- */

static void
test_hello(void)
{
    struct talk t = talk_open(&h);
    is_int((int)talk_hello(&t, -2, -1, NULL), ETD_WELCOME, "who says HELLO is welcome");
    is_int((int)talk_hello(&t, -2, -1, NULL), ETD_BYE,
           "who says it again within the conversation");
    is_str(t.code, "UNKNOWN", "has left it");
    is_int((int)talk_hello(&t, -2, -1, NULL), ETD_WELCOME, "and may begin another");
    talk_close(&t);
}

/* Who has the records up to some number goes on with the next, where these are records
 * of this run; 0 are those of any run. */
static void
test_goes_on(void)
{
    enum run { SAME, ANY, OTHER };
    static const char *const names[] = {"this run", "any run", "another run"};
    struct talk t;
    const struct {
        int64_t after;
        enum run run;
        bool goes_on;
    } row[] = {
        {0, SAME, true},
        {0, ANY, true},
        {0, OTHER, false},
        {h.log.seq - 5, SAME, true},
        {h.log.seq - 5, ANY, false},
        {h.log.seq - 5, OTHER, false},
        {h.log.seq, SAME, true},
        {h.log.seq, OTHER, false},
        {h.log.seq + 1, SAME, false},
    };
    for (size_t i = 0; i < sizeof row / sizeof *row; i++) {
        const struct etd_head head = talk_head();
        t = talk_open(&h);
        struct etd_out o = talk_say(ETD_HELLO, 2);
        etd_put_int(&o, "after", row[i].after);
        etd_put_int(&o, "credit", 10);
        unsigned char *run = memmem(o.bytes, o.used, head.run, ETD_RUN_ID);
        if (!run)
            bail("HELLO names no run");
        if (row[i].run == ANY)
            memset(run, 0, ETD_RUN_ID);
        run[ETD_RUN_ID - 1] ^= row[i].run == OTHER;
        talk_send(&t, &o);
        if (talk_until(&t, ETD_WELCOME) != ETD_WELCOME)
            bail("a viewer is not served: %s", t.code);
        is_int(etd_get_bool(&t.f.body, "goes_on", false), row[i].goes_on,
               "whoever has %lld records of %s goes on, or begins anew",
               (long long)row[i].after, names[row[i].run]);
        is_int(etd_get_int(&t.f.body, "head", -1), h.log.seq,
               "and is told how many there are");
        if (row[i].goes_on && row[i].after < h.log.seq) {
            while (t.records == 0 && !talk_is_over(talk_hear(&t)))
                ;
            is_int(t.seq, row[i].after + 1, "it hears the next");
        }
        talk_close(&t);
    }
}

static bool
one_is_refused(struct house *house, struct etd_client **c, int n)
{
    (void)house;
    return strcmp(etd_client_status(c[n - 1])->code, "FULL") == 0;
}

static void
test_full(void)
{
    struct etd_client *c[ETD_CLIENTS + 1];
    for (int i = 0; i < ETD_CLIENTS; i++)
        c[i] = house_client(&h, true);
    ok(house_drive(&h, c, ETD_CLIENTS, all_live), "64 viewers are served");
    c[ETD_CLIENTS] = house_client(&h, true);
    ok(house_drive(&h, c, ETD_CLIENTS + 1, one_is_refused), "the next is refused");
    etd_client_close(&c[0]);
    for (int i = 1; i <= ETD_CLIENTS; i++)
        etd_client_close(&c[i]);
}

int
main(void)
{
    struct eti_seams seams = eti_system;
    int code = -1;
    seams.monotonic = house_clock;
    house_begin(&h);
    eti_ctx_set_seams(h.cx, &seams);
    ok(house_start(&h, &code), "the hub of a run starts (%d)", code);
    test_join();
    test_facts();
    test_hello();
    test_goes_on();
    test_removed();
    test_history();
    test_questions();
    test_other_run();
    test_hub_dies();
    test_silence();
    test_machine_stands();
    test_end();
    ok(house_start(&h, &code), "it starts again");
    test_full();
    house_end(&h);
    return done();
}
