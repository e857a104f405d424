/* SPDX-License-Identifier: Apache-2.0 */
/* house.c: see house.h. */
#include "config.h"

#include "t/dist/house.h"

#include <dirent.h>
#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "core/base/seams.h"
#include "dist/hub/follow.h"
#include "dist/hub/hub.h"
#include "t/tap.h"

static void
need(struct house *h, et_status status)
{
    if (status != ET_OK)
        bail("%s", et_error_get(h->cx)->message);
}

static void
run_shell(const char *command, const char *folder)
{
    char line[256];
    snprintf(line, sizeof line, "%s '%s'", command, folder);
    if (system(line) != 0)
        diag("%s failed", line);
}

void
house_begin(struct house *h)
{
    struct et_run *run;
    int64_t cut;
    *h = (struct house){.supervisor = -1, .name = "test-otter"};
    snprintf(h->folder, sizeof h->folder, "/tmp/etd-XXXXXX");
    if (et_ctx_new(&h->cx) != ET_OK || !mkdtemp(h->folder))
        bail("no folder for the test: %s", strerror(errno));
    setenv("XDG_RUNTIME_DIR", h->folder, 1);
    setenv("XDG_STATE_HOME", h->folder, 1);
    snprintf(h->directory, sizeof h->directory, "%s/runs", h->folder);
    if (mkdir(h->directory, 0700) != 0)
        bail("no folder for runs: %s", strerror(errno));
    snprintf(h->directory, sizeof h->directory, "%s/runs/one", h->folder);
    snprintf(h->socket, sizeof h->socket, "%s/etude/%s.sock", h->folder, h->name);
    need(h, et_run_open(h->cx,
                        &(struct et_run_config){
                            .directory = h->directory, .name = h->name, .threads = 1},
                        &run));
    et_run_close(&run);
    need(h, eti_events_continue(h->cx, h->directory, &cut, &h->log));
}

void
house_end(struct house *h)
{
    house_kill(h);
    eti_events_end(&h->log);
    etd_follow_close(&h->follow);
    free(h->mark);
    run_shell("rm -rf", h->folder);
    et_ctx_free(&h->cx);
}

/* The hub, in a child of the test: it shares what the seams are made of, if that is
 * memory that is shared. */
static void
run_hub(const struct house *h, int supervisor)
{
    struct et_ctx *cx;
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    if (et_ctx_new(&cx) != ET_OK)
        _exit(126);
    eti_ctx_set_seams(cx, h->seams);
    _exit(etd_hub_run(cx, h->directory, supervisor) == ET_OK ? 0 : 1);
}

bool
house_start(struct house *h, int *exit)
{
    const char *build = getenv("ET_BUILDDIR");
    char program[4096], packet[4096];
    int pair[2];
    snprintf(program, sizeof program, "%s/etude", build ? build : ".");
    if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair) != 0)
        bail("no pair of sockets");
    h->hub = fork();
    if (h->hub == 0 && h->seams) {
        close(pair[0]);
        run_hub(h, pair[1]);
    }
    if (h->hub == 0) {
        dup2(pair[1], ETD_HUB_FD);
        execl(program, program, ETD_HUB_COMMAND, h->directory, NULL);
        _exit(127);
    }
    close(pair[1]);
    h->supervisor = pair[0];
    if (recv(pair[0], packet, sizeof packet, 0) > 0)
        return true;
    waitpid(h->hub, exit, 0);
    *exit = WIFEXITED(*exit) ? WEXITSTATUS(*exit) : -1;
    h->hub = 0;
    close(h->supervisor);
    h->supervisor = -1;
    return false;
}

static int
wait_hub(struct house *h)
{
    int status = 0;
    waitpid(h->hub, &status, 0);
    h->hub = 0;
    close(h->supervisor);
    h->supervisor = -1;
    return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

int
house_stop(struct house *h)
{
    char bytes[256];
    struct etd_out o;
    const struct etd_head head = {.kind = ETD_BYE};
    etd_begin(&o, bytes, sizeof bytes, &head, 0);
    if (send(h->supervisor, bytes, etd_end(&o), MSG_NOSIGNAL) < 0)
        diag("the hub is gone already");
    return wait_hub(h);
}

void
house_kill(struct house *h)
{
    if (h->hub <= 0)
        return;
    kill(h->hub, SIGKILL);
    wait_hub(h);
}

void
house_tell(struct house *h, int n)
{
    struct et_log_entry entry[3];
    snprintf(entry[0].name, sizeof entry[0].name, "loss/train/total");
    snprintf(entry[1].name, sizeof entry[1].name, "lr-SGD/group0");
    snprintf(entry[2].name, sizeof entry[2].name, "metrics/eval/Accuracy");
    for (int i = 0; i < n; i++) {
        h->ba++;
        struct et_record r = {
            .kind = ET_RECORD_BATCH,
            .t = 1e9 + (double)h->ba,
            .ep = h->ba / 100,
            .ba = h->ba,
            .sp = 64 * h->ba,
            .entry = entry,
            .n = 2,
        };
        entry[0].value = 1.0 / (double)h->ba;
        entry[1].value = 0.1;
        entry[2].value = (double)(h->ba % 10) / 10;
        if (h->ba % 100 == 0)
            r.kind = ET_RECORD_EVAL, r.text = "eval", r.entry = entry + 2, r.n = 1;
        if (h->ba % 31 == 0)
            r.kind = ET_RECORD_LOG, r.text = "so far, so good", r.level = ET_LOG_INFO,
            r.n = 0;
        eti_events_write(&h->log, &r);
    }
    eti_events_flush(&h->log);
}

/* ---- the supervisor's part ---- */

static struct etd_answer
answer_to(struct house *h, const struct etd_command *c)
{
    struct etd_answer a = {.kind = ETD_APPLIED, .step = h->ba};
    for (int64_t i = 0; i < h->applied; i++)
        if (memcmp(h->mark[i].id, c->id, ETD_CMD_ID) == 0)
            return h->mark[i].answer;
    memcpy(a.id, c->id, sizeof a.id);
    if (c->op == ETD_OP_CHECKPOINT) {
        a.kind = ETD_EXPIRED;
    } else if (strcmp(c->value, "bad") == 0) {
        a.kind = ETD_REJECTED;
        a.code = 5008;
        snprintf(a.text, sizeof a.text, "%s bad outside (0, 10]", c->key);
    } else {
        a.rev = ++h->rev;
        snprintf(a.text, sizeof a.text, "%s", c->who);
        /* As a supervisor does: a record of what was applied. */
        char text[3 * ETD_WORD + ETD_NOTE];
        snprintf(text, sizeof text, "%s %s %s %s -> applied", c->who,
                 etd_op_name(c->op), c->key, c->value);
        const struct et_record r = {
            .kind = ET_RECORD_COMMAND, .t = 1e9, .ba = h->ba, .text = text};
        eti_events_write(&h->log, &r);
        eti_events_flush(&h->log);
    }
    h->mark = realloc(h->mark, sizeof *h->mark * (size_t)(h->applied + 1));
    memcpy(h->mark[h->applied].id, c->id, ETD_CMD_ID);
    h->mark[h->applied++].answer = a;
    return a;
}

void
house_supervise(struct house *h)
{
    char bytes[ETD_CONTROL_BYTES];
    ssize_t n;
    if (h->n_held > 0 && !h->holds_answers) {
        (void)!send(h->supervisor, h->held, h->n_held, MSG_NOSIGNAL);
        h->n_held = 0;
    }
    while (h->supervisor >= 0 &&
           (n = recv(h->supervisor, bytes, sizeof bytes, MSG_DONTWAIT)) > 0) {
        struct etd_frame f;
        struct etd_fault fault;
        struct etd_command c;
        if (etd_read(bytes, (size_t)n, &f, &fault) != ET_OK)
            continue;
        if (f.head.kind == ETD_HELLO) {
            h->places++;
            etd_get_text(&f.body, "endpoint", h->place, sizeof h->place);
            etd_get_text(&f.body, "why", h->why, sizeof h->why);
        }
        if (f.head.kind != ETD_CMD || etd_command_read(&f, &c) != NULL)
            continue;
        h->commands++;
        h->last = c;
        struct etd_answer a = answer_to(h, &c);
        size_t size = etd_answer_write(bytes, sizeof bytes, &f.head, &a);
        if (h->holds_answers && size <= sizeof h->held) {
            memcpy(h->held, bytes, size);
            h->n_held = size;
        } else if (send(h->supervisor, bytes, size, MSG_NOSIGNAL) < 0)
            return;
    }
}

/* ---- looking at the hub ---- */

int64_t
house_memory(const struct house *h)
{
    char path[64], line[256];
    long long kb = 0;
    snprintf(path, sizeof path, "/proc/%d/status", (int)h->hub);
    FILE *f = fopen(path, "r");
    while (f && fgets(line, sizeof line, f))
        if (sscanf(line, "RssAnon: %lld kB", &kb) == 1)
            break;
    if (f)
        fclose(f);
    return kb << 10;
}

int
house_descriptors(const struct house *h)
{
    char path[64];
    int n = 0;
    snprintf(path, sizeof path, "/proc/%d/fd", (int)h->hub);
    DIR *d = opendir(path);
    while (d && readdir(d))
        n++;
    if (d)
        closedir(d);
    return n;
}

/* ---- clients ---- */

struct etd_client *
house_client(struct house *h, bool control)
{
    struct etd_client *c;
    need(h, etd_client_open(h->cx,
                            &(struct etd_client_options){
                                .channel = {.target = h->socket}, .control = control},
                            &c));
    return c;
}

bool
house_drive(struct house *h, struct etd_client **c, int n,
            bool (*until)(struct house *h, struct etd_client **c, int n))
{
    const double patience = 120;
    double end = eti_system.monotonic() + patience; /* the context's may be a test's */
    struct pollfd p[128];
    while (!until(h, c, n)) {
        int wait = 20;
        for (int i = 0; i < n; i++) {
            int mine = etd_client_timeout(c[i]);
            p[i] = (struct pollfd){.fd = etd_client_fd(c[i]), .events = POLLIN};
            wait = mine >= 0 && mine < wait ? mine : wait;
        }
        if (eti_system.monotonic() > end)
            return false;
        (void)poll(p, (nfds_t)n, wait);
        for (int i = 0; i < n; i++)
            need(h, etd_client_step(c[i]));
        house_supervise(h);
    }
    return true;
}

bool
all_live(struct house *h, struct etd_client **c, int n)
{
    (void)h;
    for (int i = 0; i < n; i++)
        if (etd_client_status(c[i])->link != ETD_LINK_LIVE)
            return false;
    return true;
}

bool
all_equal(struct house *h, struct etd_client **c, int n)
{
    if (!all_live(h, c, n))
        return false;
    for (int i = 0; i < n; i++)
        if (etd_client_model(c[i])->seq != h->log.seq)
            return false;
    return true;
}

bool
house_is_equal(struct house *h, struct etd_client *c)
{
    unsigned char mine[ETD_DIGEST], his[ETD_DIGEST];
    int64_t left, seq = etd_client_model(c)->seq;
    if (h->follow && etd_follow_model(h->follow)->seq > seq)
        etd_follow_close(&h->follow);
    if (!h->follow)
        need(h, etd_follow_open(h->cx, h->directory, &h->follow));
    need(h, etd_follow_read(h->follow, 10, seq, &left));
    need(h, etd_model_digest(etd_follow_model(h->follow), mine));
    need(h, etd_model_digest(etd_client_model(c), his));
    return memcmp(mine, his, sizeof mine) == 0;
}

/* ---- the clock ---- */

static double stands_at, ahead; /* 0: it goes as the system's, AHEAD of it */

double
house_clock(void)
{
    return stands_at > 0 ? stands_at : eti_system.monotonic() + ahead;
}

void
house_stop_clock(void)
{
    stands_at = house_clock();
}

void
house_pass(double seconds)
{
    stands_at += seconds;
}

void
house_start_clock(void)
{
    ahead = stands_at - eti_system.monotonic();
    stands_at = 0;
}
