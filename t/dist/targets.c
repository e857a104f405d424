/* SPDX-License-Identifier: Apache-2.0 */
/* What people write for a run somewhere: a worker's name, an address, a run at
 * either. */
#include "config.h"

#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#include "dist/wire/endpoint.h"
#include "dist/wire/errors.h"
#include "dist/worker/target.h"
#include "t/data/fixture.h"
#include "t/tap.h"

static char folder[600];

/* The longest name of a run has three letters more. */
#define N60 "abcdefghijklmnopqrstuvwxyz-abcdefghijklmnopqrstuvwxyz-012345"

static void
test_targets(struct et_ctx *cx)
{
    static const struct {
        const char *text;
        bool is;
        const char *address, *run, *place;
        int code; /* of what is refused */
    } row[] = {
        {"lab", true, "tcp://10.0.0.1:7018", "", "lab", 0},
        {"calm-heron@lab", true, "tcp://10.0.0.1:7018", "calm-heron", "lab", 0},
        {"@lab", true, "tcp://10.0.0.1:7018", "", "lab", 0},
        {"far", true, "ssh://far.example", "", "far", 0},
        {"x@far", true, "ssh://far.example", "x", "far", 0},
        {"laboratory", false, "", "", "", 0},
        {"x@laboratory", false, "", "", "", 0},
        {"runs/x", false, "", "", "", 0},
        {"tcp://10.0.0.1:7018", true, "tcp://10.0.0.1:7018", "", "lab", 0},
        {"tcp://10.0.0.1:7018/calm-heron", true, "tcp://10.0.0.1:7018", "calm-heron",
         "lab", 0},
        {"tcp://10.0.0.1:7018/", true, "tcp://10.0.0.1:7018", "", "lab", 0},
        {"ssh://other.example/x", true, "ssh://other.example", "x", "other.example", 0},
        {"ssh://me@other.example", true, "ssh://me@other.example", "",
         "me@other.example", 0},
        {"tcp://10.0.0.2:7018", true, NULL, NULL, NULL, ETD_E_KEYS},
        {"tcp://10.0.0.1:70180", true, NULL, NULL, NULL, ETD_E_ADDRESS},
        {"tcp://10.0.0.1:0", true, NULL, NULL, NULL, ETD_E_ADDRESS},
        {"tcp://10.0.0.1:7018x", true, NULL, NULL, NULL, ETD_E_ADDRESS},
        {"tcp://10.0.0.1", true, NULL, NULL, NULL, ETD_E_ADDRESS},
        {"tcp:///x", true, NULL, NULL, NULL, ETD_E_ADDRESS},
        {N60 "123@lab", true, "tcp://10.0.0.1:7018", N60 "123", "lab", 0},
        {N60 "1234@lab", true, NULL, NULL, NULL, 0},
        {"tcp://10.0.0.1:7018/" N60 "123", true, "tcp://10.0.0.1:7018", N60 "123",
         "lab", 0},
        {"tcp://10.0.0.1:7018/" N60 "1234", true, NULL, NULL, NULL, 0},
        {"a/b@lab", true, NULL, NULL, NULL, 0},
        {"x@y@lab", true, NULL, NULL, NULL, 0},
    };
    static struct etd_target t;
    bool is;
    for (size_t i = 0; i < sizeof row / sizeof *row; i++) {
        et_status status = etd_target_parse(cx, row[i].text, folder, &t, &is);
        const int code = et_error_get(cx)->code;
        if (!row[i].address) {
            ok(status != ET_OK && code == row[i].code, "%s is refused: %s", row[i].text,
               et_error_get(cx)->message);
            et_error_clear(cx);
            continue;
        }
        need(cx, status);
        is_int(is, row[i].is, "%s is %s", row[i].text,
               row[i].is ? "a worker's" : "something on this machine");
        if (!is)
            continue;
        is_str(t.address, row[i].address, "it is at that address");
        is_str(t.run, row[i].run, "that run there");
        is_str(t.place, row[i].place, "and called so");
        is_int(t.has_keys, strncmp(row[i].address, "tcp:", 4) == 0,
               "with keys where it needs them");
    }
}

/* Addresses as long as there is room for, and longer. */
static void
test_lengths(struct et_ctx *cx)
{
    static struct etd_target t;
    for (int n = ETD_ADDRESS - 2; n <= ETD_ADDRESS + 1; n++)
        for (int run = 0; run < 2; run++) {
            char text[ETD_ADDRESS + 16];
            bool is, fits = n < ETD_ADDRESS;
            snprintf(text, sizeof text, "ssh://%0*d%s", n - (int)strlen("ssh://"), 7,
                     run ? "/calm-heron" : "");
            et_status status = etd_target_parse(cx, text, folder, &t, &is);
            is_int(status, fits ? ET_OK : ET_EINVAL,
                   "an address of %d bytes is %s, %s a run", n,
                   fits ? "taken" : "refused", run ? "with" : "without");
            et_error_clear(cx);
            ok(!fits || (strlen(t.address) == (size_t)n &&
                         strncmp(t.address, text, (size_t)n) == 0 &&
                         strcmp(t.run, run ? "calm-heron" : "") == 0),
               "and what is taken is whole");
        }
}

static void
test_ports(struct et_ctx *cx)
{
    static const struct {
        const char *address;
        long least;
        bool right;
    } row[] = {
        {"tcp://h:1", 1, true},       {"tcp://h:0", 1, false},
        {"tcp://h:0", 0, true},       {"tcp://h:65535", 1, true},
        {"tcp://h:65536", 1, false},  {"tcp://h:00001", 1, true},
        {"tcp://h:000001", 1, false}, {"tcp://h:", 0, false},
        {"tcp://h:7a", 1, false},     {"tcp://h:-1", 0, false},
        {"tcp://h: 7", 1, false},     {"tcp://[::1]:7", 1, true},
    };
    for (size_t i = 0; i < sizeof row / sizeof *row; i++) {
        is_int(etd_address_check_port(cx, row[i].address, row[i].least) == ET_OK,
               row[i].right, "%s has %s port from %ld on", row[i].address,
               row[i].right ? "a" : "no", row[i].least);
        et_error_clear(cx);
    }
}

/* What a client is given of a target: all of it. */
static void
test_options(struct et_ctx *cx)
{
    static const char *const text[] = {"calm-heron@lab", "lab", "x@far"};
    static struct etd_target t;
    bool is;
    for (int i = 0; i < 3; i++) {
        need(cx, etd_target_parse(cx, text[i], folder, &t, &is));
        memset(t.id, 7 + i, sizeof t.id);
        struct etd_client_options o = etd_target_options(&t);
        is_str(o.channel.target, i < 2 ? "tcp://10.0.0.1:7018" : "ssh://far.example",
               "%s is gone to at its address", text[i]);
        is_str(o.run ? o.run : "any",
               i == 0   ? "calm-heron"
               : i == 1 ? "any"
                        : "x",
               "for that run");
        ok(memcmp(o.id, t.id, sizeof o.id) == 0, "and no other of its name");
        ok(i < 2 ? o.channel.keys == &t.keys && o.channel.server == t.server
                 : !o.channel.keys && !o.channel.server,
           "%s", i < 2 ? "with both keys" : "ssh needs no keys of ours");
    }
}

/* A run of this machine, whose hub need not be there. */
static void
test_local(struct et_ctx *cx)
{
    static struct etd_target t;
    static const char id[] = "0123456789abcdef0123456789abcdef";
    unsigned char bytes[ETD_RUN_ID];
    if (!etd_run_id(id, bytes))
        bail("no id");
    if (etd_target_local(cx, "calm-heron", id, &t) != ET_OK)
        et_error_clear(cx);
    is_str(t.run, "calm-heron", "a run of this machine is asked for by its name");
    ok(memcmp(t.id, bytes, sizeof bytes) == 0, "and its id, as others may have it");
    is_int(etd_target_local(cx, "../x", id, &t), ET_EINVAL, "a path is no name");
    et_error_clear(cx);
}

int
main(void)
{
    struct et_ctx *cx = need_ctx();
    static struct etd_keys server, own;
    char path[700];
    snprintf(folder, sizeof folder, "%s/config", scratch_folder());
    if (mkdir(folder, 0700) != 0)
        bail("no folder");
    need(cx, etd_keys_draw(cx, &server));
    need(cx, etd_keys_draw(cx, &own));
    snprintf(path, sizeof path, "%s/curve.key", folder);
    need(cx, etd_keys_write(cx, path, &own));
    struct etd_worker lab = {.address = "tcp://10.0.0.1:7018", .since = "2026-01-02"};
    memcpy(lab.key, server.public_key, sizeof lab.key);
    const struct etd_worker far = {.address = "ssh://far.example",
                                   .since = "2026-01-02"};
    snprintf(path, sizeof path, "%s/workers.yaml", folder);
    need(cx, etd_workers_write(cx, path, "lab", &lab));
    need(cx, etd_workers_write(cx, path, "far", &far));
    test_targets(cx);
    test_lengths(cx);
    test_ports(cx);
    test_options(cx);
    test_local(cx);
    et_ctx_free(&cx);
    return done();
}
