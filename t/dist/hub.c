/* The hub and its viewers: all of them know what the log says, whenever they came. */
#include "config.h"

#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "core/base/seams.h"
#include "dist/client_parts.h"
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
        .line = {.target = h.socket}, .control = true, .id = {1, 2, 3}};
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

static void
test_end(void)
{
    struct stat st;
    struct etd_client *c = house_client(&h, false);
    ok(house_drive(&h, &c, 1, all_equal), "a viewer");
    house_tell(&h, 10);
    is_int(house_stop(&h), 0, "the hub ends when the supervisor says so");
    ok(house_drive(&h, &c, 1, is_stopped), "and says so to its viewers");
    is_int(etd_client_model(c)->seq, h.log.seq, "after the last record");
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
    test_removed();
    test_history();
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
