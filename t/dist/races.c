/* SPDX-License-Identifier: Apache-2.0 */
/* Commands to a run that trains, from operators who know nothing of each other, at the
 * worst of moments: each is applied once or not at all, as its answer says, in one
 * order that the log has and that all ranks keep (RELIABILITY.md 6, R23). */
#include "config.h"

#include <jansson.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "core/base/seams.h"
#include "dist/hub/client.h"
#include "dist/wire/errors.h"
#include "etude/control.h"
#include "etude/run.h"
#include "t/tap.h"

enum { OPERATORS = 4, EACH = 6, MOST = 256 };
enum { PATIENCE = 300 }; /* seconds: then it will never come */

static struct et_ctx *cx;
static char folder[128], program[4096];
static int n_ranks = 1;

/* ---- a run ---- */

static const char recipe[] =
    "max_duration: 100000000ba\n"
    "seed: 3\n"
    "model: {name: mlp, hidden: 16, layers: 1}\n"
    "train_data: {name: synthetic_images, batch_size: 8, num_samples: 32, workers: 0}\n"
    "optimizer: {name: sgd, lr: 0.001}\n"
    "checkpoint: {interval: 200ba, keep: 3}\n";

static void
nap(void)
{
    nanosleep(&(struct timespec){.tv_nsec = 2000000}, NULL);
}

static json_t *
facts(const char *run)
{
    char path[256];
    snprintf(path, sizeof path, "%s/%s/run.json", folder, run);
    return json_load_file(path, 0, NULL);
}

static long
fact(const char *run, const char *key)
{
    json_t *all = facts(run);
    long value = (long)json_integer_value(json_object_get(all, key));
    json_decref(all);
    return value;
}

static bool
is_state(const char *run, const char *state)
{
    json_t *all = facts(run);
    const char *now = json_string_value(json_object_get(all, "state"));
    bool is = now && strcmp(now, state) == 0;
    json_decref(all);
    return is;
}

static bool
becomes(const char *run, const char *state)
{
    double end = eti_monotonic(cx) + PATIENCE;
    while (!is_state(run, state) && eti_monotonic(cx) < end)
        nap();
    return is_state(run, state);
}

/* The ranks of RUN: those children of its supervisor that are no hub. */
static int
find_ranks(const char *run, pid_t *rank)
{
    char path[64], name[64], text[4096];
    long boss = fact(run, "pid");
    int n = 0, pid;
    snprintf(path, sizeof path, "/proc/%ld/task/%ld/children", boss, boss);
    FILE *f = fopen(path, "r");
    while (f && n < 8 && fscanf(f, "%d", &pid) == 1) {
        snprintf(name, sizeof name, "/proc/%d/cmdline", pid);
        FILE *g = fopen(name, "r");
        size_t got = g ? fread(text, 1, sizeof text - 1, g) : 0;
        text[got] = '\0';
        if (g)
            fclose(g);
        const char *second = got ? text + strlen(text) + 1 : "";
        if (got && strcmp(second, "__hub") != 0)
            rank[n++] = (pid_t)pid;
    }
    if (f)
        fclose(f);
    return n;
}

static void
signal_ranks(const char *run, int number)
{
    pid_t rank[8];
    int n = find_ranks(run, rank);
    for (int i = 0; i < n; i++)
        kill(rank[i], number);
}

static void
begin(const char *run, const char *more)
{
    char line[8192];
    snprintf(line, sizeof line,
             "cd %s && %s train r.yaml -d -q --run_directory %s --run_name %s -n %d %s "
             "</dev/null",
             folder, program, run, run, n_ranks, more);
    if (system(line) != 0 || !becomes(run, "running"))
        bail("no run %s", run);
}

/* ---- operators ---- */

struct asker {
    struct etd_client *c;
    struct etd_answer answer[MOST]; /* but RECEIVED, in order [n] */
    int n;
};

static void
hear(struct asker *o)
{
    struct etd_answer a;
    if (etd_client_step(o->c) != ET_OK)
        bail("a client failed");
    while (etd_client_answer(o->c, &a))
        if (a.kind != ETD_RECEIVED && o->n < MOST)
            o->answer[o->n++] = a;
}

/* A line may be stale, as after 3 s in which the machine stood still: what is heard on
 * it makes it live again. */
static void
wait_until_live(struct asker *o)
{
    double end = eti_monotonic(cx) + PATIENCE;
    while (etd_client_status(o->c)->link != ETD_LINK_LIVE) {
        if (eti_monotonic(cx) > end)
            bail("no hub answers");
        hear(o);
        if (etd_client_status(o->c)->link == ETD_LINK_DISCONNECTED)
            etd_client_retry(o->c);
        nap();
    }
}

static struct asker
join(const char *run, const char *as)
{
    struct asker o = {0};
    char target[256];
    snprintf(target, sizeof target, "%s/etude/%s.sock", folder, run);
    const struct etd_client_options options = {
        .channel = {.target = target}, .control = true, .as = as};
    if (etd_client_open(cx, &options, &o.c) != ET_OK)
        bail("no client");
    wait_until_live(&o);
    return o;
}

static void
send_one(struct asker *o, enum etd_op op, const char *key, const char *value,
         int64_t if_rev, int ttl_ms, unsigned char *id)
{
    wait_until_live(o);
    if (etd_client_command(o->c, op, key, value, if_rev, ttl_ms, id) != ET_OK)
        bail("not sent: %s", et_error_get(cx)->message);
}

/* One that was made before. */
static void
send_again(struct asker *o, const struct etd_command *command)
{
    wait_until_live(o);
    if (etd_client_repeat(o->c, command) != ET_OK)
        bail("not sent: %s", et_error_get(cx)->message);
}

static const struct etd_answer *
find_answer(const struct asker *o, const unsigned char *id)
{
    for (int i = 0; i < o->n; i++)
        if (memcmp(o->answer[i].id, id, ETD_CMD_ID) == 0)
            return &o->answer[i];
    return NULL;
}

static const struct etd_answer *
newest(const struct asker *o)
{
    return &o->answer[o->n - 1];
}

/* The answer to ID; its kind is RECEIVED if none came in time. */
static struct etd_answer
wait_for(struct asker *o, const unsigned char *id)
{
    double end = eti_monotonic(cx) + PATIENCE;
    while (!find_answer(o, id) && eti_monotonic(cx) < end) {
        hear(o);
        nap();
    }
    const struct etd_answer *a = find_answer(o, id);
    return a ? *a : (struct etd_answer){.kind = ETD_RECEIVED};
}

/* What it has been told of once is written down: the hub has it. */
static void
wait_until_received(struct asker *o, const unsigned char *id)
{
    struct etd_answer a;
    double end = eti_monotonic(cx) + PATIENCE;
    while (eti_monotonic(cx) < end) {
        if (etd_client_step(o->c) != ET_OK)
            bail("a client failed");
        while (etd_client_answer(o->c, &a)) {
            if (a.kind == ETD_RECEIVED && memcmp(a.id, id, ETD_CMD_ID) == 0)
                return;
            if (a.kind != ETD_RECEIVED && o->n < MOST)
                o->answer[o->n++] = a;
        }
        nap();
    }
    bail("a command was not received");
}

static const char *
ask(struct asker *o, enum etd_op op, const char *key, const char *value)
{
    unsigned char id[ETD_CMD_ID];
    send_one(o, op, key, value, -1, 50000, id);
    return etd_kind_name(wait_for(o, id).kind);
}

/* ---- the log ---- */

struct said {
    char text[ET_REQUEST_TEXT];
    int64_t ba;
};
static struct said said[MOST];

/* Its records of commands, in order. */
static int
read_commands(const char *run)
{
    char path[256];
    struct et_events *e;
    struct et_record r;
    bool got = true;
    int n = 0;
    snprintf(path, sizeof path, "%s/%s/events.log", folder, run);
    if (et_events_open(cx, path, &e) != ET_OK)
        bail("no log of %s", run);
    while (et_events_next(e, &r, &got) == ET_OK && got)
        if (r.kind == ET_RECORD_COMMAND && n < MOST) {
            snprintf(said[n].text, sizeof said[n].text, "%s", r.text);
            said[n++].ba = r.ba;
        }
    et_events_close(&e);
    if (getenv("ET_SHOW"))
        for (int i = 0; i < n; i++)
            diag("%lld %s", (long long)said[i].ba, said[i].text);
    return n;
}

static int
count(int n, const char *what)
{
    int found = 0;
    for (int i = 0; i < n; i++)
        found += strstr(said[i].text, what) != NULL;
    return found;
}

/* ---- R23: two, four at once ---- */

/* Every "set" found what the one before it had left: nothing was lost, nothing was done
 * twice, and there is one order. */
static bool
is_chain(int n)
{
    double now = 0.001, value, was;
    int64_t ba = 0;
    for (int i = 0; i < n; i++) {
        const char *set = strstr(said[i].text, " set optimizer.lr ");
        const char *old = strstr(said[i].text, " -> was ");
        if (!set || !old)
            continue;
        value = strtod(set + strlen(" set optimizer.lr "), NULL);
        was = strtod(old + strlen(" -> was "), NULL);
        if (was != now || said[i].ba < ba) {
            diag("after %g: %s", now, said[i].text);
            return false;
        }
        now = value;
        ba = said[i].ba;
    }
    return true;
}

static void
test_crowd(void)
{
    static const char *const names[OPERATORS] = {"a", "b", "c", "d"};
    struct asker op[OPERATORS];
    unsigned char id[ETD_CMD_ID];
    char value[32];
    int answers = 0, once = 0;
    double end = eti_monotonic(cx) + PATIENCE;
    begin("crowd", "");
    for (int i = 0; i < OPERATORS; i++)
        op[i] = join("crowd", names[i]);
    for (int k = 0; k < EACH; k++)
        for (int i = 0; i < OPERATORS; i++) {
            snprintf(value, sizeof value, "0.0%d%d1", i + 1, k + 1);
            send_one(&op[i], ETD_OP_SET, "optimizer.lr", value, -1, 50000, id);
            hear(&op[i]);
        }
    while (answers < OPERATORS * EACH && eti_monotonic(cx) < end) {
        answers = 0;
        for (int i = 0; i < OPERATORS; i++) {
            hear(&op[i]);
            answers += op[i].n;
        }
        nap();
    }
    is_int(answers, OPERATORS * EACH,
           "%d operators give %d commands each at once: all "
           "are answered",
           OPERATORS, EACH);
    /* Beyond the next comparison of the ranks' parameters, which ends a run of ranks
     * that took them in different orders. */
    int64_t at = newest(&op[0])->step;
    send_one(&op[0], ETD_OP_CHECKPOINT, NULL, NULL, -1, 50000, id);
    (void)wait_for(&op[0], id);
    while (newest(&op[0])->step < at + 1100 && eti_monotonic(cx) < end + PATIENCE) {
        for (int i = 0; i < 60; i++)
            nap();
        send_one(&op[0], ETD_OP_CONTINUE, NULL, NULL, -1, 50000, id);
        (void)wait_for(&op[0], id);
    }
    ok(newest(&op[0])->step >= at + 1100,
       "the ranks stay alike for 1,000 batches more");
    is_str(ask(&op[0], ETD_OP_STOP, NULL, NULL), "APPLIED", "and stop together");
    ok(becomes("crowd", "stopped"), "the run has stopped");
    int n = read_commands("crowd");
    for (int k = 0; k < EACH; k++)
        for (int i = 0; i < OPERATORS; i++) {
            snprintf(value, sizeof value, "lr 0.0%d%d1 ->", i + 1, k + 1);
            once += count(n, value) == 1;
        }
    is_int(once, OPERATORS * EACH, "each is in the log once");
    ok(is_chain(n), "and each found what the one before it had left");
    for (int i = 0; i < OPERATORS; i++)
        etd_client_close(&op[i].c);
}

/* ---- two who mean the same revision ---- */

static void
test_revision(void)
{
    struct asker a = join("one", "a"), b = join("one", "b");
    unsigned char first[ETD_CMD_ID], second[ETD_CMD_ID];
    is_str(ask(&a, ETD_OP_SET, "optimizer.lr", "0.002"), "APPLIED", "a setting");
    int64_t rev = newest(&a)->rev;
    signal_ranks("one", SIGSTOP);
    send_one(&a, ETD_OP_SET, "optimizer.lr", "0.003", rev, 50000, first);
    wait_until_received(&a, first);
    send_one(&b, ETD_OP_SET, "optimizer.lr", "0.004", rev, 50000, second);
    const struct etd_answer late = wait_for(&b, second);
    ok(late.kind == ETD_REJECTED && late.code == ETD_E_REVISION,
       "of two who change the same revision the second is rejected, also while the "
       "first "
       "is on its way");
    signal_ranks("one", SIGCONT);
    const struct etd_answer early = wait_for(&a, first);
    ok(early.kind == ETD_APPLIED && early.rev == rev + 1, "the first is applied");
    etd_client_close(&a.c);
    etd_client_close(&b.c);
}

/* ---- too late ---- */

static void
test_expiry(void)
{
    struct asker a = join("one", "a");
    unsigned char id[ETD_CMD_ID];
    signal_ranks("one", SIGSTOP);
    send_one(&a, ETD_OP_SET, "optimizer.lr", "0.0666", -1, 500, id);
    is_str(etd_kind_name(wait_for(&a, id).kind), "EXPIRED",
           "a command that no rank takes in time expires");
    signal_ranks("one", SIGCONT);
    is_str(ask(&a, ETD_OP_SET, "optimizer.lr", "0.005"), "APPLIED",
           "the next one is applied");
    is_int(count(read_commands("one"), "0.0666"), 0, "and the other one never is");
    etd_client_close(&a.c);
}

/* ---- taking the run while others' commands are on their way ---- */

static void
test_take(void)
{
    struct asker a = join("one", "a"), b = join("one", "b");
    unsigned char before[ETD_CMD_ID], take[ETD_CMD_ID], after[ETD_CMD_ID];
    signal_ranks("one", SIGSTOP);
    send_one(&b, ETD_OP_SET, "optimizer.lr", "0.0071", -1, 50000, before);
    wait_until_received(&b, before);
    send_one(&a, ETD_OP_TAKE, NULL, NULL, -1, 50000, take);
    is_str(etd_kind_name(wait_for(&a, take).kind), "APPLIED",
           "an operator takes the run");
    send_one(&b, ETD_OP_SET, "optimizer.lr", "0.0072", -1, 50000, after);
    const struct etd_answer refused = wait_for(&b, after);
    ok(refused.kind == ETD_REJECTED && refused.code == ETD_E_LEASE,
       "another's later command is rejected");
    signal_ranks("one", SIGCONT);
    is_str(etd_kind_name(wait_for(&b, before).kind), "APPLIED",
           "the one before it is applied");
    int n = read_commands("one");
    ok(count(n, "lr 0.0071 ->") == 1 && count(n, "0.0072") == 0, "as the log says");
    etd_client_close(&a.c);
    etd_client_close(&b.c);
}

/* ---- while it saves ---- */

static void
test_checkpoint(void)
{
    struct asker a = join("one", "a"), b = join("one", "b");
    unsigned char save[ETD_CMD_ID], set[ETD_CMD_ID], pause[ETD_CMD_ID],
        more[ETD_CMD_ID];
    int before = count(read_commands("one"), " checkpoint -> saving");
    signal_ranks("one", SIGSTOP); /* so that all of them meet one batch */
    send_one(&a, ETD_OP_CHECKPOINT, NULL, NULL, -1, 50000, save);
    wait_until_received(&a, save);
    send_one(&b, ETD_OP_SET, "optimizer.lr", "0.008", -1, 50000, set);
    wait_until_received(&b, set);
    send_one(&a, ETD_OP_PAUSE, NULL, NULL, -1, 50000, pause);
    wait_until_received(&a, pause);
    send_one(&b, ETD_OP_CHECKPOINT, NULL, NULL, -1, 50000, more);
    wait_until_received(&b, more);
    signal_ranks("one", SIGCONT);
    ok(wait_for(&a, pause).kind == ETD_APPLIED &&
           wait_for(&b, more).kind == ETD_APPLIED,
       "a setting, a pause and another save while a save is on its way: applied");
    ok(becomes("one", "paused"), "the run pauses");
    int n = read_commands("one"), at = 0;
    is_int(count(n, " checkpoint -> saving"), before + 2, "both saves are in the log");
    while (at < n && !strstr(said[at].text, "lr 0.008"))
        at++;
    ok(at > 0 && at + 1 < n && strstr(said[at - 1].text, "checkpoint") &&
           strstr(said[at + 1].text, "pause"),
       "in the order in which they were given");
    is_str(ask(&b, ETD_OP_CONTINUE, NULL, NULL), "APPLIED", "and it goes on");
    ok(becomes("one", "running"), "as it says");
    etd_client_close(&a.c);
    etd_client_close(&b.c);
}

/* ---- while it stops ---- */

static void
test_stop(void)
{
    struct asker a = join("one", "a"); /* who has taken it */
    unsigned char stop[ETD_CMD_ID], set[ETD_CMD_ID], again[ETD_CMD_ID];
    signal_ranks("one", SIGSTOP);
    send_one(&a, ETD_OP_STOP, NULL, NULL, -1, 50000, stop);
    wait_until_received(&a, stop);
    send_one(&a, ETD_OP_SET, "optimizer.lr", "0.009", -1, 50000, set);
    wait_until_received(&a, set);
    send_one(&a, ETD_OP_STOP, NULL, NULL, -1, 50000, again);
    wait_until_received(&a, again);
    signal_ranks("one", SIGCONT);
    is_str(etd_kind_name(wait_for(&a, stop).kind), "APPLIED", "a run stops");
    bool applied = wait_for(&a, set).kind == ETD_APPLIED;
    ok(find_answer(&a, set) != NULL, "what is asked meanwhile is answered");
    ok(becomes("one", "stopped"), "it has stopped");
    is_int(count(read_commands("one"), "lr 0.009 ->"), applied,
           "and the log has it if the answer says so (%s)",
           applied ? "applied" : "not");
    is_int(fact("one", "exit_code"), 75, "saved");
    etd_client_close(&a.c);
}

/* ---- while it is started again ---- */

static void
test_restart(void)
{
    begin("back", "--autoresume checkpoint.interval=100000000ba");
    struct asker a = join("back", "a");
    struct etd_command command = {.op = ETD_OP_SET,
                                  .if_rev = -1,
                                  .ttl_ms = 50000,
                                  .key = "optimizer.lr",
                                  .value = "0.0123"};
    memset(command.id, 7, sizeof command.id);
    is_str(ask(&a, ETD_OP_SET, "optimizer.lr", "0.01"), "APPLIED", "a setting");
    int64_t at = newest(&a)->step;
    signal_ranks("back", SIGSTOP);
    send_again(&a, &command);
    wait_until_received(&a, command.id);
    signal_ranks("back", SIGKILL);
    double end = eti_monotonic(cx) + PATIENCE;
    while ((fact("back", "incarnation") < 2 || !is_state("back", "running")) &&
           eti_monotonic(cx) < end)
        nap();
    is_int(fact("back", "incarnation"), 2, "its ranks die and are started again");
    struct asker b = join("back", "b");
    send_again(&b, &command);
    struct etd_answer answer = wait_for(&b, command.id);
    bool applied = answer.kind == ETD_APPLIED;
    ok(answer.kind != ETD_RECEIVED,
       "a command that was on its way then is answered who asks again: %s",
       etd_kind_name(answer.kind));
    is_str(ask(&b, ETD_OP_SET, "optimizer.lr", "0.02"), "APPLIED",
           "a new one is applied");
    int n = read_commands("back");
    is_int(count(n, "lr 0.0123 ->"), applied, "the first was applied if that says so");
    end = eti_monotonic(cx) + PATIENCE;
    while (newest(&b)->step <= at + 1 && eti_monotonic(cx) < end) {
        for (int i = 0; i < 60; i++)
            nap();
        (void)ask(&b, ETD_OP_CONTINUE, NULL, NULL);
    }
    is_str(ask(&b, ETD_OP_SET, "optimizer.lr", "0.03"), "APPLIED", "and another");
    is_int(count(read_commands("back"), "lr 0.03 -> was 0.02"), 1,
           "and not undone by what was asked before the crash");
    is_str(ask(&b, ETD_OP_STOP, NULL, NULL), "APPLIED", "the run stops");
    ok(becomes("back", "stopped"), "as others do");
    etd_client_close(&a.c);
    etd_client_close(&b.c);
}

/* None outlives the test. */
static void
end_run(const char *run)
{
    long pid = fact(run, "pid");
    if (pid > 1 && fact(run, "exit_code") == 0 && !is_state(run, "stopped")) {
        signal_ranks(run, SIGCONT);
        kill((pid_t)pid, SIGKILL);
    }
}

static void
clean(void)
{
    char line[256];
    end_run("crowd");
    end_run("one");
    end_run("back");
    snprintf(line, sizeof line, "rm -rf %s", folder);
    if (system(line) != 0)
        diag("%s is left", folder);
}

int
main(void)
{
    char path[256];
    const char *build = getenv("ET_BUILDDIR");
    snprintf(path, sizeof path, "%s/etude", build ? build : ".");
    if (!realpath(path, program))
        bail("no program %s", path);
    snprintf(folder, sizeof folder, "%s/etude-races-XXXXXX", P_tmpdir);
    if (!mkdtemp(folder) || et_ctx_new(&cx) != ET_OK)
        bail("no folder");
    atexit(clean);
#ifdef ET_GLOO
    n_ranks = 2;
#endif
    setenv("XDG_RUNTIME_DIR", folder, 1);
    setenv("XDG_STATE_HOME", folder, 1);
    snprintf(path, sizeof path, "%s/no-config", folder);
    setenv("ETUDE_CONFIG_DIR", path, 1);
    setenv("OMP_NUM_THREADS", "1", 1);
    snprintf(path, sizeof path, "%s/r.yaml", folder);
    FILE *f = fopen(path, "w");
    if (!f || fputs(recipe, f) < 0 || fclose(f) != 0)
        bail("no recipe");
    test_crowd();
    begin("one", "");
    test_revision();
    test_expiry();
    test_checkpoint();
    test_take();
    test_stop();
    test_restart();
    et_ctx_free(&cx);
    return done();
}
